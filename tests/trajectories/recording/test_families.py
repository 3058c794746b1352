"""Threads under the ones that started them, whatever the order and the claims they come with."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exports import exported, row_id
from people import make_org
from stenograph.errors import ForbiddenError, InvalidInputError
from stenograph.trajectories.importers import claude_code
from stenograph.trajectories.recording.record import record
from trajectories.importers import claude_code_lines, codex_lines

per_example = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def thread(name, parent=None, started=()):
    """A Codex thread that was started by `parent`, and has calls that started others."""
    log = codex_lines.Log(name, **({} if parent is None else {"parent_thread_id": parent}))
    log.message("user", f"go {name}")
    for child in started:
        log.call(f"spawn-{child}", "spawn_agent", '{"task_name": "x"}')
        log.output(f"spawn-{child}", f'{{"agent_id": "{child}"}}')
    log.message("assistant", f"done {name}")
    return log.read()


def take_in(database, caller, draft):
    return database.write(lambda tx: record(tx, caller, draft))[0]


def names(count):
    return [f"019cadfd-8900-7a00-8000-0000000000{n:02x}" for n in range(count)]


def parents_of(database):
    with database.read() as tx:
        return dict(tx.rows("SELECT conversation_id, parent_conversation_id FROM sessions"))


@pytest.fixture
def sqlite_org(sqlite_database):
    return make_org(sqlite_database)


@per_example
@given(data=st.data())
def test_claims_of_parents_never_make_a_circle(sqlite_database, sqlite_org, data):
    mark = data.draw(st.integers(0, 2**40))
    ids = [f"{mark:012x}-{name}" for name in names(4)]
    claims = {own: data.draw(st.sampled_from([None, *ids])) for own in ids}
    sessions = {}
    for _ in range(2):
        for own in data.draw(st.permutations(ids)):
            draft = thread(own)
            draft.parent_key = claims[own]
            sessions[own] = take_in(sqlite_database, sqlite_org.owner, draft).session_id
    above = parents_of(sqlite_database)
    for start in above:
        seen, at = set(), start
        while at is not None:
            assert at not in seen
            seen.add(at)
            at = above[at]
    for session_id in sessions.values():
        exported(sqlite_database, session_id)


@pytest.mark.parametrize("order", ["parent first", "child first"])
def test_parent_and_child_meet_in_either_order(database, org, order):
    parent, child = names(2)
    drafts = [thread(parent, started=[child]), thread(child, parent)]
    if order == "child first":
        drafts.reverse()
    found = {draft.key: take_in(database, org.owner, draft).session_id for draft in drafts}
    document = exported(database, found[parent])
    assert [c["session_id"] for c in document["subagent_trajectories"]] == [found[child]]
    with database.read() as tx:
        linked = tx.value("SELECT child_conversation_id FROM tasks WHERE kind = 'tool_task'")
    assert linked == row_id(database, found[child])
    again = {draft.key: take_in(database, org.owner, draft) for draft in drafts}
    assert again[child].parent_session_id == found[parent]
    assert {r.change for r in again.values()} == {"unchanged"}


def test_a_subagent_named_as_its_session_is_not_under_itself(database, org):
    log = claude_code_lines.Log(session="x", agentId="x", isSidechain=True)
    log.user("q")
    log.answer("m", claude_code_lines.text("a"))
    draft = claude_code.read({"agent-x.jsonl": log.bytes()}, "agent-x.jsonl")
    assert draft.key == draft.parent_key
    for _ in range(2):
        found = take_in(database, org.owner, draft)
        assert found.parent_session_id is None
    assert set(parents_of(database).values()) == {None}


def test_a_family_deeper_than_documents_go_is_refused_before_the_first_byte(database, org):
    every = names(34)
    found = [
        take_in(database, org.owner, thread(own, above))
        for own, above in zip(every, [None, *every], strict=False)
    ]
    with pytest.raises(InvalidInputError, match="32 deep"):
        exported(database, found[0].session_id)
    exported(database, found[1].session_id)


def test_only_who_imported_a_log_or_an_administrator_adds_to_it(database, org):
    log = claude_code_lines.Log()
    log.user("one")
    log.answer("m1", claude_code_lines.text("a"))
    first = take_in(database, org.member, log.read())
    other = claude_code_lines.Log()
    other.user("another story", uuid="z1")
    other.answer("z2", claude_code_lines.text("told otherwise, and at greater length"))
    with pytest.raises(ForbiddenError):
        take_in(database, org.agent, other.read())
    assert take_in(database, org.agent, log.read()).change == "unchanged"
    log.user("two")
    log.answer("m2", claude_code_lines.text("b"))
    grown = take_in(database, org.admin, log.read())
    assert (grown.change, grown.session_id) == ("grown", first.session_id)
