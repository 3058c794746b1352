"""A rollout that is imported while its thread runs ends as if it had been imported once."""

from pathlib import Path
from typing import Any

import pytest

from exports import exported, row_id
from stenograph.errors import InvalidInputError
from stenograph.storage.database import Database
from stenograph.trajectories.importers.codex import read
from stenograph.trajectories.recording.record import record
from trajectories.importers.codex_lines import AFTER, Log, tokens

CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus" / "codex"


def rewound() -> bytes:
    log = Log()
    for number, prompt in enumerate(("One", "Two", "Two, better")):
        log.event("task_started", turn_id=AFTER)
        log.message("user", prompt, id=f"msg_{number}")
        log.call(f"c{number}")
        log.record(f"resp_{number}a", tokens(10, 1))
        log.output(f"c{number}")
        log.message("assistant", "Done")
        log.record(f"resp_{number}b", tokens(11, 1))
        log.event("task_complete", turn_id=AFTER)
        if number == 1:
            log.event("thread_rolled_back", num_turns=1)
    return log.bytes()


LOGS = {path.parts[-6]: path.read_bytes() for path in CORPUS.glob("*/sessions/*/*/*/*.jsonl")}
CASES = {case: LOGS[case] for case in ("d2_codemode", "e_resume", "l_killed") if case in LOGS}
CASES["rewound"] = rewound()


def state(database: Database, session_id: str) -> Any:
    """The document and the feed, without the ids that differ between two sessions."""
    document = exported(database, session_id)
    document.pop("session_id")
    document.pop("trajectory_id")
    with database.read() as tx:
        feed = tx.rows(
            "SELECT m.kind, m.source, m.status, v.content FROM messages m"
            " LEFT JOIN variants v ON v.id = m.variant_id"
            " WHERE m.conversation_id = :id ORDER BY m.cursor",
            id=row_id(database, session_id),
        )
    return document, [tuple(row) for row in feed]


@pytest.mark.parametrize("case", CASES)
def test_a_log_that_grows_is_taken_up(case: str, database: Database, org: Any) -> None:
    data = CASES[case]
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    cuts = sorted({*ends[::5], *(end - 7 for end in ends[::8]), len(data)})
    grown: list[Any] = []
    for end in cuts:
        try:
            draft = read(data[:end], "rollout.jsonl")
        except InvalidInputError:
            continue
        grown = database.write(lambda tx, draft=draft: record(tx, org.owner, draft))
    draft = read(data, "rollout.jsonl")
    draft.key = draft.trajectory_id = "another"
    (once, *_) = database.write(lambda tx: record(tx, org.owner, draft))
    assert state(database, grown[0].session_id) == state(database, once.session_id)
    (again, *_) = database.write(lambda tx: record(tx, org.owner, draft))
    assert again.change == "unchanged"
