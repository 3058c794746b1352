"""The words that are written are those of the catalogue, with the members that it names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import stenograph
from stenograph.events import catalogue

SOURCE = Path(stenograph.__file__).parent
#: What the names of rows are called where an event has to name one itself.
NAMES = {"task_key", "turn_public_id", "variant_public_id", "run_public_id"}


def written() -> Iterator[tuple[str, str, set[str] | None]]:
    """(place, word, members of a payload that is written out) of each `Event("word", …)`."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Event":
                continue
            word = node.args[0] if node.args else None
            if not isinstance(word, ast.Constant) or not isinstance(word.value, str):
                continue
            given = [k.value for k in node.keywords if k.arg == "payload"]
            members = None
            if given and isinstance(given[0], ast.Dict):
                keys = [key for key in given[0].keys if isinstance(key, ast.Constant)]
                members = {str(key.value) for key in keys}
            yield f"{path.relative_to(SOURCE)}:{node.lineno}", word.value, members


@pytest.mark.parametrize(
    ("place", "word", "members"), [pytest.param(*it, id=it[0]) for it in written()]
)
def test_what_is_written_is_in_the_catalogue(
    place: str, word: str, members: set[str] | None
) -> None:
    assert word in catalogue.TYPES
    assert (members or set()) - NAMES <= catalogue.PAYLOADS[word]


def test_the_catalogue_is_whole() -> None:
    assert catalogue.PAYLOADS.keys() == catalogue.TYPES
    assert catalogue.LIFECYCLE <= catalogue.TYPES
