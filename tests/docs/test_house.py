"""What the house says of itself: the map is complete, the contract holds, links lead somewhere."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "stenograph"
WRITTEN = [
    *(ROOT / name for name in ("README.md", "STYLE.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def test_the_map_names_every_room() -> None:
    drawn = (ROOT / "docs" / "map.md").read_text("utf-8").split("```")[1]
    rooms = {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    files = {path.name for path in PACKAGE.glob("[!_]*.py")}
    assert {name for name in rooms | files if f"  {name} " not in drawn} == set()
    named = set(re.findall(r"^  (?:\S+\.py  )?([a-z_]+(?:/|\.py))", drawn, re.MULTILINE))
    assert named <= rooms | files


def test_the_map_tells_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    layers = [
        {name.strip().removeprefix("stenograph.") for name in layer.split("|")}
        for layer in reversed(contracts["contracts"][0]["layers"])
    ]
    text = (ROOT / "docs" / "map.md").read_text("utf-8").split("## Which way imports run")[1]
    (drawn,) = re.findall(r"`([^`]*→[^`]*)`", text)
    assert [{name.strip() for name in part.split(",")} for part in drawn.split("→")] == layers


def test_imports_run_one_way() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_changelog_keeps_its_form() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    for heading in headings[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading)


def test_decisions_are_numbered_once_and_by_their_title() -> None:
    notes = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [note.name[:4] for note in notes]
    assert len(set(numbers)) == len(numbers)
    for note in notes:
        assert re.match(rf"# {note.name[:4]}\. \S", note.read_text("utf-8")), note.name


@pytest.mark.parametrize("document", WRITTEN, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text("utf-8")):
        if not re.match(r"https?://", target):
            assert (document.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize("document", WRITTEN, ids=lambda path: path.name)
def test_decisions_that_are_named_are_there(document: Path) -> None:
    for number in re.findall(r"decisions?/(\d{4})", document.read_text("utf-8")):
        assert list((ROOT / "docs" / "decisions").glob(f"{number}-*.md")), number


def test_decisions_that_the_code_names_are_there() -> None:
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for number in re.findall(r"decisions/(\d{4})", path.read_text("utf-8")):
            assert list((ROOT / "docs" / "decisions").glob(f"{number}-*.md")), (path, number)
