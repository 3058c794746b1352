"""What of an output is kept and told: no cut halves a secret."""

import msgspec
import pytest

from engine.driving import Driven
from engine.test_rounds import feed
from stenograph.engine import results
from stenograph.engine.calls import ERROR
from stenograph.engine.history import read_rest

SECRET = "sesame-" + "0123456789" * 5
HALVES = (SECRET[:25], SECRET[-25:])


@pytest.mark.parametrize("gone", range(1, len(SECRET), 11))
def test_a_beginning_and_a_preview_hold_a_secret_whole_or_not_at_all(gone: int) -> None:
    for at in (results.LONGEST, 3_000, 6_000 + results.PREVIEW - 3_000):
        text = "x" * (at - gone) + SECRET + "y" * (results.LONGEST + 10 - at)
        kept, is_part = results.kept(text, [SECRET])
        assert is_part
        assert len(kept) == at - gone if at == results.LONGEST else results.LONGEST
        told = results.preview(text[: 6_000 + results.PREVIEW], [SECRET])
        assert len(told) <= results.PREVIEW
        for shown in (kept, told):
            rest = shown.replace(SECRET, "")
            assert not any(half in rest for half in HALVES)


def test_neither_error_nor_preview_nor_message_of_a_call_halves_a_secret(driven: Driven) -> None:
    driven.secrets = lambda tx, conversation_id: (SECRET,)
    lead = "There is no tool named '"
    name = "n" * (ERROR - len(lead) - 20) + SECRET + "m" * 4_000
    session_id = driven.open(f"[dev:call {name}]")
    driven.settle()
    [(error, rest)] = driven.rows(
        "SELECT k.error, d.rest FROM tasks k JOIN task_details d ON d.task_id = k.id"
        " WHERE k.kind = 'tool_task'"
    )
    assert error == lead + "n" * (ERROR - len(lead) - 20)
    preview = read_rest(rest).preview
    assert preview is not None
    assert SECRET in preview
    assert feed(driven, session_id)[-1][1] == f"It gave: {preview}"
    assert msgspec.json.decode(rest) == {"preview": preview}
