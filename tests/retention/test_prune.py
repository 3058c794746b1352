"""What pruning promises: what goes, what stays, who may go, and that the bytes are gone."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from people import Org
from retention import bytes_left, engine_rows, rows
from retention.rows import T0, World
from stenograph.clock import DAY, MINUTE, now
from stenograph.errors import ForbiddenError, InvalidInputError, RefusedError
from stenograph.ids import new_id
from stenograph.retention import policy, store
from stenograph.retention.integrity import check
from stenograph.retention.prune import Pruned, prune
from stenograph.storage.database import Database, Tx
from stenograph.storage.location import Location


@pytest.fixture
def world(database: Database, org: Org) -> World:
    return database.write(lambda tx: rows.build(tx, org.owner))


#: Most tests look at rows, and need not write every table anew.
pruned = partial(prune, rewrite=False)


def counts(done: Pruned) -> tuple[int, int, int]:
    report = done.reports[0]
    return report.runs, report.direct_replies, report.skipped


def checkpoint(database: Database, location: Location) -> None:
    """Bring everything into the files, as time would, and into what a planner samples."""
    database.write(lambda tx: tx.run("ANALYZE"))
    if location.is_postgres:
        database.write(lambda tx: tx.run("CHECKPOINT"))
    else:
        database.scrub()


def test_no_byte_of_what_expires_is_left_and_all_else_is(
    database: Database, database_location: Location, org: Org, world: World
) -> None:
    database.write(lambda tx: engine_rows.add(tx, org.owner, world))
    checkpoint(database, database_location)
    assert bytes_left.in_files(database, database_location, world.marks) == set(world.marks)
    gone = {name: mark for name, mark in world.marks.items() if rows.expires(name)}
    kept = {name: mark for name, mark in world.marks.items() if not rows.expires(name)}

    done = prune(database, 0)

    assert done.erased
    assert counts(done) == (1, 1, 0)
    assert bytes_left.in_tables(database, gone) == set()
    assert bytes_left.in_tables(database, kept) == set(kept)
    assert bytes_left.in_files(database, database_location, gone) == set()


def test_the_scrub_of_a_quick_prune_leaves_nothing_in_any_table(
    database: Database, world: World
) -> None:
    gone = {name: mark for name, mark in world.marks.items() if rows.expires(name)}
    assert pruned(database, 0).erased
    assert bytes_left.in_tables(database, gone) == set()


def test_identities_statuses_and_usage_stay(database: Database, world: World) -> None:
    def facts(tx: Tx) -> list[Any]:
        return [
            tx.rows("SELECT id, public_id, position, status, active_variant_id FROM turns"),
            tx.rows("SELECT id, public_id, status, source, position FROM variants ORDER BY id"),
            tx.rows("SELECT id, public_id, status, variant_id, completed_at FROM runs"),
            tx.rows(
                "SELECT id, run_id, variant_id, prompt_tokens, cost_usd FROM usage_receipts"
                " ORDER BY id"
            ),
            tx.rows("SELECT id, position, part, turn_id FROM steps ORDER BY id"),
            tx.rows("SELECT id, sequence, type, turn_id, run_id FROM events ORDER BY id"),
            tx.rows("SELECT id, name, digest, size FROM originals"),
        ]

    with database.read() as tx:
        before = facts(tx)
    pruned(database, 0)
    with database.read() as tx:
        assert facts(tx) == before
        assert tx.rows("SELECT task_id FROM events") == [(None,), (None,)]
        assert tx.rows("SELECT DISTINCT invocation_id FROM usage_receipts") == [(None,)]


def test_the_marker_lies_with_the_run_or_with_the_direct_reply(
    database: Database, world: World
) -> None:
    start = now()
    pruned(database, 0)
    with database.read() as tx:
        run = tx.value("SELECT details_pruned_at FROM runs")
        marked = dict(tx.rows("SELECT id, details_pruned_at FROM variants"))
    assert start <= run <= now()
    assert start <= marked.pop(world.ids["direct"]) <= now()
    assert set(marked.values()) == {None}


def test_a_pruned_record_is_whole(database: Database, world: World) -> None:
    _make_original_genuine(database, world)
    assert check(database) == []
    pruned(database, 0)
    assert check(database) == []


def _make_original_genuine(database: Database, world: World) -> None:
    import hashlib

    import zstandard

    data = b"the file"
    database.write(
        lambda tx: tx.run(
            "UPDATE originals SET digest = :digest, size = :size, compressed = :compressed",
            digest=hashlib.sha256(data).digest(),
            size=len(data),
            compressed=zstandard.compress(data),
        )
    )


def test_twice_is_once(database: Database, world: World) -> None:
    pruned(database, 0)
    with database.read() as tx:
        first = tx.rows("SELECT id, details_pruned_at FROM runs")
    assert counts(pruned(database, 0)) == (0, 0, 0)
    with database.read() as tx:
        assert tx.rows("SELECT id, details_pruned_at FROM runs") == first


# Who may go


def _subagent(tx: Tx, w: World, status: str) -> None:
    """Let the call have started a session, whose only turn stands so."""
    creator = tx.value("SELECT creator_id FROM conversations")
    c = w.ids["child"] = tx.insert(
        "conversations", public_id=new_id(), workspace_id=w.ids["workspace"], creator_id=creator,
        metadata="{}", access_default="full", parent_id=w.ids["conversation"], last_activity_at=T0,
        created_at=T0, updated_at=T0,
    )  # fmt: skip
    rows.variant(tx, w, "hers", rows.turn(tx, w, "child turn", 0, "child"), "run", status=status)
    tx.run("UPDATE tasks SET child_conversation_id = :c WHERE id = :id", id=w.ids["call"], c=c)


def _stopped(tx: Tx, w: World, call: str, ago: int) -> None:
    """Let a model call have been stopped so long ago, and nobody have said yet what it took."""
    tx.run(
        "UPDATE invocations SET status = 'canceled', terminal_at = :at WHERE id = :id",
        id=w.ids[call],
        at=now() - ago,
    )
    tx.run("DELETE FROM usage_receipts WHERE id = :id", id=w.ids[f"receipt of {call}"])


def _leased(tx: Tx, w: World, left: int) -> None:
    """Let a worker hold the call for so long still."""
    tx.run(
        "UPDATE dispatches SET status = 'claimed', settled_at = NULL, lease_expires_at = :at",
        at=now() + left,
    )


HOLDS: dict[str, Callable[[Tx, World], object]] = {
    **{
        f"a task is {status}": lambda tx, w, status=status: tx.run(
            "UPDATE tasks SET status = :status WHERE id = :id", id=w.ids["call"], status=status
        )
        for status in ("queued", "needs_approval", "running", "dispatched", "awaiting_input")
    },
    **{
        f"the run is {status}": lambda tx, w, status=status: tx.run(
            "UPDATE runs SET status = :status, delivered_at = completed_at", status=status
        )
        for status in ("pending", "paused", "needs_attention", "canceling")
    },
    "a worker holds a call": lambda tx, w: _leased(tx, w, MINUTE),
    "a subagent is at work": lambda tx, w: _subagent(tx, w, "running"),
    "a subagent waits": lambda tx, w: _subagent(tx, w, "pending"),
    "a model call was stopped and is not billed": lambda tx, w: _stopped(
        tx, w, "superseded", MINUTE
    ),
    "a model call is under way": lambda tx, w: tx.run(
        "UPDATE invocations SET status = 'running' WHERE id = :id", id=w.ids["superseded"]
    ),
    "the run goes on in the background": lambda tx, w: tx.run(
        "UPDATE runs SET status = 'running', delivered_at = completed_at"
    ),
    "the candidate is not settled": lambda tx, w: tx.run(
        "UPDATE variants SET status = 'running' WHERE id = :id", id=w.ids["ran"]
    ),
}


@pytest.mark.parametrize("hold", HOLDS)
def test_a_run_that_something_still_holds_is_skipped_whole(
    database: Database, world: World, hold: str
) -> None:
    database.write(lambda tx: HOLDS[hold](tx, world))
    runs, replies, skipped = counts(pruned(database, 0))
    assert (runs, replies, skipped) == (0, 1, 1)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM task_details") == 2
        assert tx.value("SELECT details_pruned_at FROM runs") is None


#: What looks like one of these and is none any more.
RELEASES: dict[str, Callable[[Tx, World], object]] = {
    "a worker's lease is over": lambda tx, w: _leased(tx, w, -MINUTE),
    "a subagent has its end": lambda tx, w: _subagent(tx, w, "failed"),
    "nobody will bill a stopped model call": lambda tx, w: _stopped(tx, w, "superseded", 2 * DAY),
    "an answered question waits for nobody": lambda tx, w: tx.run(
        "UPDATE approvals SET decision = NULL"
    ),
    "somebody else's input steers": lambda tx, w: tx.run(
        "UPDATE inputs SET state = 'steering', consumed_at = NULL, turn_id = NULL"
    ),
}


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_over_holds_no_run(database: Database, world: World, release: str) -> None:
    database.write(lambda tx: RELEASES[release](tx, world))
    assert counts(pruned(database, 0)) == (1, 1, 0)


REPLY_HOLDS: dict[str, Callable[[Tx, World], object]] = {
    "its model call is under way": lambda tx, w: tx.run(
        "UPDATE invocations SET status = 'running' WHERE id = :id", id=w.ids["direct call"]
    ),
    "another attempt ended later": lambda tx, w: (
        rows.invocation(tx, w, "retry", variant_id=w.ids["direct"])
        and tx.run(
            "UPDATE invocations SET terminal_at = :at WHERE id = :id",
            id=w.ids["retry"],
            at=2 * now(),
        )
    ),
    "the candidate is not settled": lambda tx, w: tx.run(
        "UPDATE variants SET status = 'pending' WHERE id = :id", id=w.ids["direct"]
    ),
    "its model call was stopped and is not billed": lambda tx, w: _stopped(
        tx, w, "direct call", MINUTE
    ),
}


@pytest.mark.parametrize("hold", REPLY_HOLDS)
def test_a_direct_reply_that_something_still_holds_is_skipped_whole(
    database: Database, world: World, hold: str
) -> None:
    database.write(lambda tx: REPLY_HOLDS[hold](tx, world))
    assert counts(pruned(database, 0)) == (1, 0, 1)
    with database.read() as tx:
        kept = "SELECT reasoning FROM variant_details WHERE variant_id = :id"
        assert tx.value(kept, id=world.ids["direct"]) is not None


def _preparing(
    tx: Tx, w: World, conversation: str, position: int, source: str = "run", *, begun: bool = True
) -> None:
    """Open a turn that waits for its first request; `begun`: its run is there."""
    tx.run("UPDATE sessions SET agent = NULL")  # or it ran elsewhere
    t = rows.turn(tx, w, "next turn", position, conversation, status="running")
    v = rows.variant(tx, w, "next", t, source, status="running")
    if begun and source == "run":
        rows.run(tx, w, "next run", v, conversation, status="running", completed_at=None)
    tx.run(
        "UPDATE conversations SET active_turn_id = :t WHERE id = :id", id=w.ids[conversation], t=t
    )


def _asked(tx: Tx, w: World, **columns: Any) -> None:
    """Let the next run have asked its model."""
    k = rows.task(tx, w, "next round", w.ids["next run"], "r1", "model_task", **columns)
    i = rows.invocation(tx, w, "next call", task_id=k)
    tx.run("UPDATE tasks SET selected_invocation_id = :i WHERE id = :id", id=k, i=i)


def test_nothing_goes_while_the_next_request_is_being_assembled(
    database: Database, world: World
) -> None:
    database.write(lambda tx: _preparing(tx, world, "conversation", 3))
    assert counts(pruned(database, 0)) == (0, 0, 2)
    database.write(lambda tx: _asked(tx, world))
    assert counts(pruned(database, 0)) == (1, 1, 0)


def test_a_summary_that_was_asked_for_is_no_request_yet(database: Database, world: World) -> None:
    database.write(lambda tx: _preparing(tx, world, "conversation", 3))
    database.write(lambda tx: _asked(tx, world, mainline=0))
    assert counts(pruned(database, 0)) == (0, 0, 2)


def test_a_run_that_nobody_has_begun_prepares_too(database: Database, world: World) -> None:
    database.write(lambda tx: _preparing(tx, world, "conversation", 3, begun=False))
    assert counts(pruned(database, 0)) == (0, 0, 2)


def test_a_direct_reply_prepares_until_its_model_is_asked(database: Database, world: World) -> None:
    database.write(lambda tx: _preparing(tx, world, "conversation", 3, "inference"))
    assert counts(pruned(database, 0)) == (0, 0, 2)

    def asked(tx: Tx) -> None:
        i = rows.invocation(tx, world, "next call", variant_id=world.ids["next"])
        tx.run("UPDATE invocations SET status = 'running', terminal_at = NULL WHERE id = :i", i=i)
        tx.run("UPDATE variants SET invocation_id = :i WHERE id = :v", i=i, v=world.ids["next"])

    database.write(asked)
    assert counts(pruned(database, 0)) == (1, 1, 1)  # itself is still under way


def test_an_answer_that_is_made_anew_prepares_too(database: Database, world: World) -> None:
    """Its turn is not the one that is being answered."""

    def anew(tx: Tx) -> None:
        tx.run("UPDATE sessions SET agent = NULL")
        shown, turn = world.ids["manual"], world.ids["manual turn"]
        rows.variant(tx, world, "anew", turn, "run", status="pending", position=1)
        tx.run("UPDATE turns SET active_variant_id = :v WHERE id = :t", v=shown, t=turn)

    database.write(anew)
    assert counts(pruned(database, 0)) == (0, 0, 2)


def test_an_agent_that_runs_elsewhere_reads_nothing_here(database: Database, world: World) -> None:
    database.write(lambda tx: _preparing(tx, world, "conversation", 3))
    database.write(lambda tx: tx.run("UPDATE sessions SET agent = '{}'"))
    assert counts(pruned(database, 0)) == (1, 1, 0)


@pytest.mark.parametrize(("boundary", "skipped"), [(0, 1), (1, 2)])
def test_a_fork_that_prepares_holds_what_it_reaches(
    database: Database, org: Org, world: World, boundary: int, skipped: int
) -> None:
    def fork(tx: Tx) -> None:
        world.ids["fork"] = rows.conversation(tx, org.owner, world, "fork")
        rows.insert(
            tx,
            "ancestries",
            conversation_id=world.ids["fork"],
            depth=1,
            ancestor_id=world.ids["conversation"],
            boundary_position=boundary,
        )
        _preparing(tx, world, "fork", boundary + 1)

    database.write(fork)
    assert counts(pruned(database, 0))[2] == skipped


def test_each_ages_alone(database: Database, world: World) -> None:
    def age(tx: Tx) -> None:
        tx.run("UPDATE runs SET completed_at = :at", at=now() - 10 * DAY)
        tx.run("UPDATE invocations SET terminal_at = :at", at=now() - 20 * DAY)
        tx.run("UPDATE imports SET imported_at = :at", at=now() - 20 * DAY)

    database.write(age)
    assert counts(pruned(database, 21)) == (0, 0, 0)
    assert counts(pruned(database, 15)) == (0, 1, 0)
    assert counts(pruned(database, 9)) == (1, 0, 0)


def test_a_run_ages_from_its_end_and_not_from_its_answer(database: Database, world: World) -> None:
    """Its answer may have been there long before its last work in the background was done."""
    database.write(
        lambda tx: tx.run("UPDATE runs SET completed_at = :at, delivered_at = 1", at=now() - DAY)
    )
    assert counts(pruned(database, 2)) == (0, 1, 0)
    assert counts(pruned(database, 1)) == (1, 0, 0)


def test_by_policy_an_old_log_ages_from_its_import(database: Database, world: World) -> None:
    database.write(lambda tx: tx.run("UPDATE imports SET imported_at = :at", at=now() - DAY))
    assert counts(pruned(database, None)) == (0, 0, 2)
    database.write(lambda tx: tx.run("UPDATE imports SET imported_at = :at", at=now() - 90 * DAY))
    assert counts(pruned(database, None)) == (1, 1, 0)


def test_an_age_that_is_asked_for_is_that_of_the_work(database: Database, world: World) -> None:
    database.write(lambda tx: tx.run("UPDATE imports SET imported_at = :at", at=now()))
    assert counts(pruned(database, 90)) == (1, 1, 0)


def test_standalone_runs_and_messages_are_left_alone(database: Database, world: World) -> None:
    def standalone(tx: Tx) -> None:
        tx.run("UPDATE runs SET variant_id = NULL, conversation_id = NULL")
        tx.run("UPDATE steps SET task_id = NULL")
        tx.run("DELETE FROM variant_details WHERE variant_id = :id", id=world.ids["ran"])

    database.write(standalone)
    assert counts(pruned(database, 0)) == (0, 1, 0)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM task_details") == 2


@pytest.mark.parametrize("page", [1, 2, 3])
def test_pages_pass_over_what_stays(
    database: Database, org: Org, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    w = database.write(lambda tx: rows.build(tx, org.owner))

    def more(tx: Tx) -> None:
        for n in range(3, 9):
            t = rows.turn(tx, w, f"turn {n}", n)
            v = rows.variant(tx, w, f"ran {n}", t, "run")
            r = rows.run(tx, w, f"run {n}", v)
            k = rows.task(tx, w, f"round {n}", r, "r1", "model_task")
            if n % 2:
                tx.run("UPDATE tasks SET status = 'running' WHERE id = :id", id=k)

    database.write(more)
    monkeypatch.setattr(store, "PAGE", page)
    assert counts(pruned(database, 0)) == (4, 1, 3)


def test_what_was_done_before_a_failure_stays_done_and_the_rest_is_taken_up(
    database: Database, world: World
) -> None:
    told: list[int] = []

    def fail(done: int) -> None:
        told.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pruned(database, 0, progress=fail)
    assert told == [1]
    assert counts(pruned(database, 0)) == (0, 1, 0)


# Files that several share


def test_a_file_that_a_later_turn_shows_stays_until_that_goes_too(
    database: Database, world: World
) -> None:
    def another(tx: Tx) -> None:
        t = rows.turn(tx, world, "other turn", 3)
        v = rows.variant(tx, world, "other", t, "run")
        r = rows.run(tx, world, "other run", v, completed_at=now() - DAY)
        k = rows.task(tx, world, "other call", r, "r2t0", "tool_task")
        tx.run(
            "UPDATE task_details SET rest = :rest WHERE task_id = :id",
            id=k,
            rest=rows.image(world),
        )

    database.write(another)
    assert counts(pruned(database, 2)) == (1, 1, 0)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM media") == 1
        assert tx.value("SELECT document FROM sessions") is not None
        # The file that was imported holds all turns, so its bytes go with the first.
        assert tx.value("SELECT compressed FROM originals") is None
    assert counts(pruned(database, 0)) == (1, 0, 0)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM media") == 0
        assert tx.value("SELECT document FROM sessions") is None


def test_files_of_the_sessions_above_and_below_go_too_and_of_no_other(
    database: Database, org: Org, world: World
) -> None:
    def relatives(tx: Tx) -> dict[str, int]:
        made = {}
        for name, parent in (("parent", None), ("sibling", "parent"), ("child", "conversation")):
            world.ids[name] = c = rows.conversation(tx, org.owner, world, name)
            rows.insert(
                tx,
                "sessions",
                conversation_id=c,
                organization_id=org.owner.organization_id,
                owner_id=org.owner.principal_id,
                parent_conversation_id=world.ids[parent] if parent else None,
                mode="standard",
                status="exit",
                tags="[]",
                options="{}",
                created_at=T0,
            )
            i = tx.insert(
                "imports",
                organization_id=org.owner.organization_id,
                conversation_id=c,
                format="atif",
                source_key=name,
                steps=0,
                report="{}",
                imported_at=T0,
            )
            made[name] = tx.insert(
                "originals", import_id=i, name="f", digest=b"d", size=1, compressed=b"bytes"
            )
        tx.run(
            "UPDATE sessions SET parent_conversation_id = :parent WHERE conversation_id = :id",
            parent=world.ids["parent"],
            id=world.ids["conversation"],
        )
        return made

    made = database.write(relatives)
    pruned(database, 0)
    with database.read() as tx:
        left = dict(tx.rows("SELECT id, compressed FROM originals"))
    assert left[made["parent"]] is None
    assert left[made["child"]] is None
    assert left[made["sibling"]] is not None


def test_reasoning_that_a_fork_adopted_goes_with_the_original(
    database: Database, org: Org, world: World
) -> None:
    def forks(tx: Tx) -> None:
        for name, source, origin in (
            ("fork", "conversation", "direct"),
            ("second", "fork", "fork"),
        ):
            c = world.ids[name] = rows.conversation(tx, org.owner, world, name)
            at = {"conversation_id": c, "depth": 1, "ancestor_id": world.ids[source]}
            rows.insert(tx, "ancestries", boundary_position=0, **at)
            t = rows.turn(tx, world, f"{name} turn", 1, name)
            origin_id = world.ids[origin if origin == "direct" else f"copy {origin}"]
            rows.variant(tx, world, f"copy {name}", t, "fork", origin_variant_id=origin_id)
            rows.details(tx, world, f"copy {name}")
            tx.run("UPDATE variants SET completed_at = :now WHERE turn_id = :t", now=now(), t=t)

    database.write(forks)
    assert counts(pruned(database, 1)) == (1, 1, 0)
    with database.read() as tx:
        left = tx.rows("SELECT reasoning, reasoning_trace, preface FROM variant_details")
        marked = tx.rows("SELECT id FROM variants WHERE details_pruned_at IS NOT NULL ORDER BY id")
    assert set(left) == {(None, None, None)}
    assert marked == [(world.ids[n],) for n in ("direct", "copy fork", "copy second")]


# The policy


def test_the_default_is_ninety_days(database: Database, world: World) -> None:
    database.write(lambda tx: tx.run("UPDATE runs SET completed_at = :at", at=now() - 89 * DAY))
    done = prune(database, rewrite=False)
    assert [(r.organization, r.days) for r in done.reports] == [("default", 90), ("elsewhere", 90)]
    assert counts(done) == (0, 1, 0)


def test_an_organization_whose_policy_is_off_is_not_looked_at(
    database: Database, org: Org, world: World
) -> None:
    database.write(lambda tx: policy.set_retention_days(tx, org.owner, None))
    done = prune(database, rewrite=False)
    assert done.reports[0].days is None
    assert counts(done) == (0, 0, 0)
    assert counts(pruned(database, 0, organization="elsewhere")) == (0, 0, 0)
    assert counts(pruned(database, 0, organization="default")) == (1, 1, 0)


@pytest.mark.parametrize("days", [None, 90])
def test_a_policy_that_is_raised_or_turned_off_stops_a_prune(
    database: Database, org: Org, world: World, days: int | None
) -> None:
    def age(tx: Tx) -> None:
        for table, column in (("runs", "completed_at"), ("invocations", "terminal_at")):
            tx.run(f"UPDATE {table} SET {column} = :at", at=now() - 40 * DAY)
        tx.run("UPDATE imports SET imported_at = :at", at=now() - 40 * DAY)

    def relent(_: int) -> None:
        database.write(lambda tx: policy.set_retention_days(tx, org.owner, days))

    database.write(age)
    database.write(lambda tx: policy.set_retention_days(tx, org.owner, 30))
    assert counts(prune(database, rewrite=False, progress=relent))[:2] == (1, 0)


def test_only_administrators_set_the_policy(database: Database, org: Org) -> None:
    assert database.write(lambda tx: policy.set_retention_days(tx, org.admin, 7)) == 7
    for caller in (org.member, org.agent):
        with pytest.raises(ForbiddenError) as refused, database.read() as tx:
            policy.retention_days(tx, caller)
        assert refused.value.code == "administrator_required"
        with pytest.raises(ForbiddenError):
            database.write(lambda tx, c=caller: policy.set_retention_days(tx, c, 1))
    with database.read() as tx:
        assert policy.retention_days(tx, org.owner) == 7
        assert policy.retention_days(tx, org.stranger) == 90


@pytest.mark.parametrize("days", [0, -1, True, 1.5, "7", 10**9])
def test_a_policy_is_a_positive_number_of_days(database: Database, org: Org, days: Any) -> None:
    with pytest.raises(RefusedError):
        database.write(lambda tx: policy.set_retention_days(tx, org.owner, days))


def test_unknown_organizations_and_ages_are_refused(database: Database, org: Org) -> None:
    with pytest.raises(InvalidInputError):
        pruned(database, 0, organization="nobody")
    with pytest.raises(InvalidInputError):
        pruned(database, -1)


# The files of the database


def test_a_reader_of_an_old_snapshot_is_waited_for_and_then_named(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stenograph.storage.sqlite._PATIENCE", 0.2)
    database = sqlite_database
    database.write(lambda tx: tx.run("UPDATE alembic_version SET version_num = version_num"))
    with database.read() as tx:
        tx.value("SELECT count(*) FROM runs")
        database.write(lambda tx: tx.run("UPDATE alembic_version SET version_num = version_num"))
        assert not prune(database, 0).erased
    assert prune(database, 0).erased
    assert os.path.getsize(f"{database.path}-wal") == 0  # type: ignore[attr-defined]
