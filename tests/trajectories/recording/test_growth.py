"""A log that is imported while it grows ends as if it had been imported once (decision 0012)."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exports import exported, row_id
from stenograph.errors import InvalidInputError
from stenograph.trajectories.importers import claude_code
from stenograph.trajectories.recording.record import record

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "claude"
CASES = ["b_tools", "c_parallel", "d_subagent", "e_resume", "g_compact", "l_killed", "n_redacted"]

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")


def log(case: str) -> tuple[dict[str, bytes], str]:
    folder = CORPUS / case / "projects"
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    roots = [name for name in files if name.endswith(".jsonl") and "/subagents/" not in name]
    return files, roots[0]


def take_in(database, org, files, root, size=None):
    """Import the first `size` bytes of a log; None if there is nothing to read in them yet."""
    files = {**files, root: files[root][:size]}
    try:
        draft = claude_code.read(files, root)
    except InvalidInputError:
        return None
    draft.originals = {root: files[root]}
    return database.write(lambda tx: record(tx, org.owner, draft))


def state(database, session_id: str):
    """Everything a reader can tell apart, without the ids that differ between two sessions."""
    document = exported(database, session_id)

    def anonymous(part):
        part.pop("session_id")
        part.pop("trajectory_id")
        for child in part.get("subagent_trajectories", ()):
            anonymous(child)
        return part

    with database.read() as tx:
        id = row_id(database, session_id)
        feed = tx.rows(
            "SELECT m.kind, m.source, m.status, m.outcome, v.content, t.position, s.text"
            " FROM messages m LEFT JOIN variants v ON v.id = m.variant_id"
            " LEFT JOIN turns t ON t.id = m.turn_id LEFT JOIN steps s ON s.id = m.step_id"
            " WHERE m.conversation_id = :id ORDER BY m.cursor",
            id=id,
        )
        runs = tx.rows(
            "SELECT t.position, r.status, r.failure_reason, r.next_round, k.key, k.status"
            " FROM runs r JOIN variants v ON v.id = r.variant_id JOIN turns t ON t.id = v.turn_id"
            " LEFT JOIN tasks k ON k.run_id = r.id WHERE t.conversation_id = :id"
            " ORDER BY t.position, k.id",
            id=id,
        )
        usage = tx.rows(
            "SELECT count(*), sum(prompt_tokens) FROM usage_receipts WHERE conversation_id = :id",
            id=id,
        )
    return anonymous(document), feed, runs, usage


@pytest.mark.parametrize("case", CASES)
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_growing_is_the_same_as_having_been_whole(database, org, case, data):
    files, root = log(case)
    whole = len(files[root])
    session = None
    for size in sorted(data.draw(st.lists(st.integers(1, whole), max_size=3))):
        session = take_in(database, org, files, root, size) or session
    last = take_in(database, org, files, root)
    assert session is None or last[0].session_id == session[0].session_id
    again = take_in(database, org, files, root)
    assert {recorded.change for recorded in again} == {"unchanged"}
    got = state(database, last[0].session_id)
    # The same log as a log of its own: another key, so that it becomes another session.
    draft = claude_code.read(files, root)
    draft.key = "fresh"
    for child in draft.children:
        child.key = f"fresh-{child.key}"
    fresh = database.write(lambda tx: record(tx, org.owner, draft))
    want = state(database, fresh[0].session_id)
    with_key_back = database.write(
        lambda tx: tx.run("DELETE FROM imports WHERE source_key LIKE 'fresh%'")
    )
    assert with_key_back
    assert got == want


def test_an_older_copy_of_a_log_takes_nothing_away(database, org):
    files, root = log("b_tools")
    (whole,) = take_in(database, org, files, root)
    (older,) = take_in(database, org, files, root, len(files[root]) // 2)
    assert (older.change, older.steps) == ("unchanged", whole.steps)
    assert "nothing was taken" in older.warnings[-1]
    (again,) = take_in(database, org, files, root)
    assert again.change == "unchanged"


def test_public_ids_of_a_turn_outlive_its_growth(database, org):
    files, root = log("b_tools")
    take_in(database, org, files, root, len(files[root]) // 2)

    def ids():
        with database.read() as tx:
            return (
                tx.rows("SELECT public_id FROM turns"),
                tx.rows("SELECT public_id FROM variants"),
                tx.rows("SELECT public_id FROM runs"),
                tx.rows("SELECT public_id FROM messages ORDER BY id"),
            )

    before = ids()
    take_in(database, org, files, root)
    assert ids() == before


def test_a_reply_that_changes_moves_behind_every_cursor_given_out(database, org):
    files, root = log("b_tools")
    take_in(database, org, files, root, len(files[root]) // 2)
    with database.read() as tx:
        seen = tx.value("SELECT max(cursor) FROM messages")
    take_in(database, org, files, root)
    with database.read() as tx:
        rows = tx.rows("SELECT kind, status FROM messages WHERE cursor > :seen", seen=seen)
    assert rows == [("reply", "exit")]
