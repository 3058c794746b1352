"""The check finds each kind of damage, and only that; a healthy record has no findings."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import zstandard

from people import Org, make_org
from retention import engine_rows, rows
from retention.rows import T0, World
from stenograph.ids import new_id
from stenograph.retention import store_rules
from stenograph.retention.integrity import Finding, check, findings
from stenograph.storage import migrate
from stenograph.storage.database import Database, Tx
from stenograph.storage.location import Location, connect
from stenograph.storage.sqlite import SqliteDatabase

T = TypeVar("T")


class Undo(Exception):
    pass


@dataclass(frozen=True)
class Record:
    """A database with a world in it, and what the check finds after damage that is taken back."""

    database: Database
    world: World

    def findings(self, damage: Callable[[Tx], T]) -> tuple[T, list[Finding]]:
        result: list[tuple[T, list[Finding]]] = []

        def act(tx: Tx) -> None:
            result.append((damage(tx), list(findings(tx))))
            raise Undo

        with pytest.raises(Undo):
            self.database.write(act)
        return result[0]


def _build(tx: Tx, org: Org) -> World:
    w = engine_rows.add(tx, org.owner, rows.build(tx, org.owner))
    data = b"the file as it came"
    tx.run(
        "UPDATE originals SET digest = :digest, size = :size, compressed = :compressed",
        digest=hashlib.sha256(data).digest(),
        size=len(data),
        compressed=zstandard.compress(data),
    )
    return w


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def record(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Record]:
    """One database for all damages of an engine: each is undone."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("integrity") / "steno.db"
        path.write_bytes(request.getfixturevalue("sqlite_template").read_bytes())
        place = Location(f"sqlite:///{path}")
    else:
        place = request.getfixturevalue("empty_postgres")()
        migrate.upgrade(place)
    database = connect(place)
    org = make_org(database)
    yield Record(database, database.write(lambda tx: _build(tx, org)))
    database.close()


def test_a_healthy_record_has_no_findings(record: Record) -> None:
    assert check(record.database) == []


def test_an_empty_record_has_no_findings(database: Database) -> None:
    assert check(database) == []


def _update(table: str, name: str, **columns: Any) -> Callable[[Tx, World], object]:
    """Set columns of the row that `name` stands for; a str value names another row."""

    def act(tx: Tx, w: World) -> object:
        values = {
            c: w.ids[v[1:]] if isinstance(v, str) and v.startswith("@") else v
            for c, v in columns.items()
        }
        sets = ", ".join(f"{c} = :{c}" for c in values)
        key = "conversation_id" if table == "sessions" else "id"
        return tx.run(f"UPDATE {table} SET {sets} WHERE {key} = :row", row=w.ids[name], **values)

    return act


def _run(sql: str) -> Callable[[Tx, World], object]:
    return lambda tx, _: tx.run(sql)


def _both(*acts: Callable[[Tx, World], object]) -> Callable[[Tx, World], object]:
    def act(tx: Tx, w: World) -> None:
        for one in acts:
            one(tx, w)

    return act


def _second_conversation(tx: Tx, w: World, **session: Any) -> None:
    row = tx.row("SELECT creator_id FROM conversations")
    assert row is not None
    w.ids["other"] = tx.insert(
        "conversations",
        public_id=new_id(),
        workspace_id=w.ids["workspace"],
        creator_id=row[0],
        metadata="{}",
        access_default="full",
        last_activity_at=T0,
        created_at=T0,
        updated_at=T0,
    )


def _second_turn(tx: Tx, w: World) -> None:
    """A run-backed turn in another conversation."""
    _second_conversation(tx, w)
    t = rows.turn(tx, w, "far turn", 0, "other")
    v = rows.variant(tx, w, "far", t, "run")
    r = rows.run(tx, w, "far run", v, "other")
    k = rows.task(tx, w, "far round", r, "r1", "model_task")
    rows.invocation(tx, w, "far call", task_id=k)


def _fork(depths: Sequence[int], ancestor: str) -> Callable[[Tx, World], object]:
    def act(tx: Tx, w: World) -> None:
        _second_turn(tx, w)
        tx.run("DELETE FROM turns WHERE id = :id", id=w.ids["far turn"])
        tx.run(
            "UPDATE conversations SET source_id = :source, next_position = 1 WHERE id = :id",
            source=w.ids["conversation"],
            id=w.ids["other"],
        )
        for depth in depths:
            rows.insert(
                tx,
                "ancestries",
                conversation_id=w.ids["other"],
                depth=depth,
                ancestor_id=w.ids[ancestor],
                boundary_position=0,
            )

    return act


def _organization(tx: Tx, w: World) -> None:
    other = tx.value("SELECT id FROM organizations WHERE slug = 'elsewhere'")
    tx.run("UPDATE sessions SET organization_id = :id", id=other)


def _parent(tx: Tx, w: World) -> None:
    _second_conversation(tx, w)
    tx.run("UPDATE sessions SET parent_conversation_id = :id", id=w.ids["other"])


def _pruned_run(tx: Tx, w: World) -> None:
    """What a prune leaves, for a rule about one thing it left by mistake."""
    run, variant = w.ids["run"], w.ids["ran"]
    tx.run("UPDATE runs SET details_pruned_at = 1 WHERE id = :id", id=run)
    tx.run("UPDATE usage_receipts SET invocation_id = NULL WHERE run_id = :id", id=run)
    tx.run("UPDATE events SET task_id = NULL")
    tx.run("DELETE FROM tasks WHERE run_id = :id", id=run)
    tx.run("DELETE FROM variant_details WHERE variant_id = :id", id=variant)
    tx.run("UPDATE steps SET rest = NULL WHERE variant_id = :id", id=variant)
    tx.run(
        "UPDATE steps SET text = NULL, task_id = NULL WHERE variant_id = :id"
        " AND part IN ('agent', 'system')",
        id=variant,
    )
    tx.run("UPDATE originals SET compressed = NULL")


def _pruned_reply(tx: Tx, w: World) -> None:
    tx.run("UPDATE variants SET details_pruned_at = 1 WHERE id = :id", id=w.ids["direct"])
    tx.run("DELETE FROM variant_details WHERE variant_id = :id", id=w.ids["direct"])


def _left(tx: Tx, w: World, table: str, **columns: Any) -> None:
    rows.insert(tx, table, **columns)


NOWHERE = 987_654

#: damage → (table, name of the broken row or its id, a part of the sentence)
DAMAGE: dict[str, tuple[Callable[[Tx, World], object], str, str | int, str]] = {
    **{
        f"{table}.{column} points nowhere": (
            _update(table, name, **{column: NOWHERE}),
            table,
            name,
            f"{column} names a row of {target}",
        )
        for table, column, target, name in [
            ("conversations", "source_turn_id", "turns", "conversation"),
            ("conversations", "active_turn_id", "turns", "conversation"),
            ("inputs", "turn_id", "turns", "input"),
            ("turns", "active_variant_id", "variants", "turn"),
            ("variants", "invocation_id", "invocations", "direct"),
            ("tasks", "parent_id", "tasks", "call"),
            ("tasks", "round_id", "tasks", "call"),
            ("tasks", "selected_invocation_id", "invocations", "round"),
            ("tasks", "child_conversation_id", "conversations", "call"),
            ("usage_receipts", "run_id", "runs", "receipt of direct call"),
            ("usage_receipts", "variant_id", "variants", "receipt of selected"),
            ("usage_receipts", "invocation_id", "invocations", "receipt of selected"),
            ("steps", "task_id", "tasks", "agent"),
        ]
    },
    "an event names no turn": (
        _run(f"UPDATE events SET turn_id = {NOWHERE} WHERE sequence = 1"),
        "events",
        1,
        "turn_id names",
    ),
    "an event names no candidate": (
        _run(f"UPDATE events SET variant_id = {NOWHERE} WHERE sequence = 1"),
        "events",
        1,
        "variant_id names",
    ),
    "an event names no run": (
        _run(f"UPDATE events SET run_id = {NOWHERE} WHERE sequence = 1"),
        "events",
        1,
        "run_id names",
    ),
    "an event names no task": (
        _run(f"UPDATE events SET task_id = {NOWHERE} WHERE sequence = 1"),
        "events",
        1,
        "task_id names",
    ),
    "an event names no step": (
        _run(f"UPDATE events SET step_id = {NOWHERE} WHERE sequence = 1"),
        "events",
        1,
        "step_id names",
    ),
    # Owners
    "another turn's candidate is active": (
        _update("turns", "turn", active_variant_id="@direct"),
        "turns",
        "turn",
        "belongs to another turn",
    ),
    "no candidate is active": (
        _update("turns", "turn", active_variant_id=None),
        "turns",
        "turn",
        "no active candidate",
    ),
    "a run lies in another conversation": (
        _both(_second_turn, _update("runs", "far run", conversation_id="@conversation")),
        "runs",
        "far run",
        "lies in another conversation",
    ),
    "another task's invocation is selected": (
        _both(_second_turn, _update("tasks", "round", selected_invocation_id="@far call")),
        "tasks",
        "round",
        "belongs to another task",
    ),
    "a call's round is another run's": (
        _both(_second_turn, _update("tasks", "call", round_id="@far round")),
        "tasks",
        "call",
        "belongs to another run",
    ),
    "an invocation has no owner": (
        _update("invocations", "superseded", task_id=None),
        "invocations",
        "superseded",
        "neither a task nor a direct reply",
    ),
    "a step's turn lies elsewhere": (
        _both(_second_turn, _update("steps", "steer", turn_id="@far turn", variant_id="@far")),
        "steps",
        "steer",
        "lies elsewhere",
    ),
    "a step's call is another candidate's": (
        _both(_second_turn, _update("steps", "agent", task_id="@far round")),
        "steps",
        "agent",
        "another candidate's run",
    ),
    "a message's turn lies elsewhere": (
        _both(
            _second_turn,
            lambda tx, w: tx.run(
                "UPDATE messages SET turn_id = :t WHERE cursor = 1", t=w.ids["far turn"]
            ),
        ),
        "messages",
        1,
        "another conversation",
    ),
    "a session lies in another organization": (
        _organization,
        "sessions",
        "conversation",
        "another organization",
    ),
    "a session names a parent alone": (_parent, "sessions", "conversation", "different parents"),
    "a fork starts elsewhere": (
        _fork([1], "other"),
        "conversations",
        "other",
        "does not start at its source",
    ),
    "an ancestor is missing": (
        _fork([1, 3], "conversation"),
        "conversations",
        "other",
        "has a gap",
    ),
    # Sequences
    "a turn is missing": (
        _both(
            _update("turns", "manual turn", position=7),
            _update("conversations", "conversation", next_position=8),
        ),
        "conversations",
        "conversation",
        "positions of its turns",
    ),
    "the next turn position lags": (
        _update("conversations", "conversation", next_position=2),
        "conversations",
        "conversation",
        "next turn position",
    ),
    "the next turn position runs ahead": (
        _update("conversations", "conversation", next_position=9),
        "conversations",
        "conversation",
        "next turn position",
    ),
    "a candidate is missing": (
        _update("variants", "ran", position=1),
        "turns",
        "turn",
        "positions of its candidates",
    ),
    "the next step lags": (
        _update("conversations", "conversation", next_step=3),
        "conversations",
        "conversation",
        "next step position",
    ),
    "a recorded step is missing": (
        _both(
            _update("sessions", "conversation", recorded=1),
            _update("conversations", "conversation", next_step=7),
        ),
        "conversations",
        "conversation",
        "a step is missing",
    ),
    "the next cursor lags": (
        _update("conversations", "conversation", next_cursor=2),
        "conversations",
        "conversation",
        "next message cursor",
    ),
    "an event is missing": (
        _run("DELETE FROM events WHERE sequence = 1"),
        "conversations",
        "conversation",
        "events are not numbered",
    ),
    "the last event is missing": (
        _run("DELETE FROM events WHERE sequence = 2"),
        "conversations",
        "conversation",
        "events are not numbered",
    ),
    "the next round is taken": (
        _update("runs", "run", next_round=1),
        "runs",
        "run",
        "next round is taken",
    ),
    # Totals
    "usage is no sum": (
        _run("UPDATE usage_totals SET requests = requests + 1"),
        "conversations",
        "conversation",
        "not the sum of its receipts",
    ),
    "a call is billed twice": (
        _update("usage_receipts", "receipt of superseded", invocation_id="@selected"),
        "invocations",
        "selected",
        "Two receipts",
    ),
    "tokens are negative": (
        _update("usage_receipts", "receipt of selected", completion_tokens=-1),
        "usage_receipts",
        "receipt of selected",
        "below zero",
    ),
    "a receipt lost its call": (
        _update("usage_receipts", "receipt of selected", invocation_id=None),
        "usage_receipts",
        "receipt of selected",
        "names no invocation",
    ),
    "a receipt bills another run": (
        _both(
            _second_turn,
            _update("usage_receipts", "receipt of selected", run_id="@far run"),
        ),
        "usage_receipts",
        "receipt of selected",
        "another run or candidate",
    ),
    "a receipt lies elsewhere": (
        _both(
            _second_turn,
            _update("usage_receipts", "receipt of selected", conversation_id="@other"),
        ),
        "usage_receipts",
        "receipt of selected",
        "another conversation",
    ),
    # The feed
    "a reply is missing": (
        lambda tx, w: tx.run(
            "DELETE FROM messages WHERE id = :id", id=w.ids["reply of direct turn"]
        ),
        "turns",
        "direct turn",
        "has no reply for it",
    ),
    "a reply is there twice": (
        lambda tx, w: rows.reply(tx, w, "turn"),
        "turns",
        "turn",
        "two replies",
    ),
    # States
    "an ended run has an open task": (
        _update("tasks", "call", status="running"),
        "runs",
        "run",
        "a task of it has not",
    ),
    "an ended run has no end": (
        _update("runs", "run", completed_at=None),
        "runs",
        "run",
        "time of completion",
    ),
    "a running run has an end": (
        _update("runs", "run", status="running"),
        "runs",
        "run",
        "time of completion",
    ),
    "an ended run has an open candidate, which is not active": (
        _both(
            lambda tx, w: rows.variant(tx, w, "second", w.ids["turn"], "run", position=1),
            _update("turns", "turn", active_variant_id="@second"),
            _update("variants", "ran", status="running"),
        ),
        "runs",
        "run",
        "its candidate has not",
    ),
    "an ended turn has an open candidate": (
        _update("variants", "manual", status="running"),
        "turns",
        "manual turn",
        "its active candidate has not",
    ),
    "an ended call has no end": (
        _update("invocations", "selected", terminal_at=None),
        "invocations",
        "selected",
        "its end has no time",
    ),
    "an ended session works": (
        _update("turns", "manual turn", status="running"),
        "sessions",
        "conversation",
        "a turn of it is under way",
    ),
    # What pruning left
    "a pruned run has a task": (
        _both(
            _pruned_run,
            lambda tx, w: tx.insert(
                "tasks",
                run_id=w.ids["run"],
                key="r1",
                kind="model_task",
                status="completed",
                transcript_visibility="visible",
                created_at=T0,
            ),
        ),
        "runs",
        "run",
        "tasks of it are there",
    ),
    "a pruned reply has a call": (
        _pruned_reply,
        "variants",
        "direct",
        "invocations of it are there",
    ),
    "a pruned candidate has reasoning": (
        _both(
            _pruned_run,
            lambda tx, w: _left(
                tx, w, "variant_details", variant_id=w.ids["ran"], reasoning_trace="t"
            ),
        ),
        "variants",
        "ran",
        "preface or reasoning is there",
    ),
    "a pruned step has content": (
        _both(_pruned_run, _update("steps", "prompt", rest="{}")),
        "steps",
        "prompt",
        "content is there",
    ),
    "a pruned agent step has text": (
        _both(_pruned_run, _update("steps", "injected", text="")),
        "steps",
        "injected",
        "content is there",
    ),
    "a pruned session has its file": (
        _both(
            _pruned_run,
            lambda tx, _: tx.run(
                "UPDATE originals SET compressed = :data", data=zstandard.compress(b"the file")
            ),
            lambda tx, _: tx.run(
                "UPDATE originals SET size = 8, digest = :digest",
                digest=hashlib.sha256(b"the file").digest(),
            ),
        ),
        "originals",
        "original",
        "its bytes are there",
    ),
    # Bytes
    "a file cannot be unpacked": (
        lambda tx, _: tx.run("UPDATE originals SET compressed = :data", data=b"junk"),
        "originals",
        "original",
        "cannot be unpacked",
    ),
    "a file is another": (
        lambda tx, _: tx.run(
            "UPDATE originals SET compressed = :data, size = 5", data=zstandard.compress(b"other")
        ),
        "originals",
        "original",
        "not those that were stored",
    ),
}


DAMAGE |= engine_rows.damages(_second_turn)


@pytest.mark.parametrize("damage", DAMAGE)
def test_each_damage_is_found_and_nothing_else(record: Record, damage: str) -> None:
    act, table, row, sentence = DAMAGE[damage]
    world = World(dict(record.world.ids), dict(record.world.marks))
    _, found = record.findings(lambda tx: act(tx, world))
    assert [(f.table, f.id) for f in found] == [
        (table, row if isinstance(row, int) else world.ids[row])
    ], found
    assert sentence in found[0].sentence


def _spoil(table: str, key: str, column: str, value: str) -> Callable[[Tx], int]:
    def damage(tx: Tx) -> int:
        row_id = tx.value(f"SELECT min({key}) FROM {table}")
        tx.run(f"UPDATE {table} SET {column} = :v WHERE {key} = :id", id=row_id, v=value)
        return int(row_id)

    return damage


@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table, column, _ in store_rules.WORDS]
)
def test_a_word_that_does_not_exist_is_found(record: Record, table: str, column: str) -> None:
    key = store_rules.KEYS.get(table, "id")
    row_id, found = record.findings(_spoil(table, key, column, "stuck"))
    said = f"Its {column} is none of"
    assert any((f.table, f.id) == (table, row_id) and said in f.sentence for f in found)


@pytest.mark.parametrize(("table", "key", "column"), store_rules.JSON)
def test_broken_json_is_found(record: Record, table: str, key: str, column: str) -> None:
    row_id, found = record.findings(_spoil(table, key, column, '{"a":'))
    assert [(f.table, f.id) for f in found] == [(table, row_id)]
    assert f"{column} is no JSON" in found[0].sentence


@pytest.fixture
def file(sqlite_database: Database) -> tuple[Path, World]:
    """A SQLite file with a world in it, closed."""
    org = make_org(sqlite_database)
    world = sqlite_database.write(lambda tx: _build(tx, org))
    sqlite_database.close()
    return sqlite_database.path, world  # type: ignore[attr-defined]


def _check_file(path: Path) -> list[Finding]:
    opened = SqliteDatabase(path)
    try:
        return check(opened)
    finally:
        opened.close()


def test_sqlite_foreign_keys_are_looked_at(file: tuple[Path, World]) -> None:
    path, world = file
    raw = sqlite3.connect(path)
    with raw:
        raw.execute(f"UPDATE inputs SET sender_id = {NOWHERE}")
    raw.close()
    assert _check_file(path) == [
        Finding("inputs", world.ids["input"], "It names a row of principals that is not there.")
    ]


def test_a_broken_page_is_found(file: tuple[Path, World]) -> None:
    path, _ = file
    raw = sqlite3.connect(path)
    (page,) = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'steps_turn'").fetchone()
    (size,) = raw.execute("PRAGMA page_size").fetchone()
    raw.close()
    with path.open("r+b") as written:
        written.seek((page - 1) * size + 3)
        written.write(b"\0\0")  # the index says that it has no entries
    found = _check_file(path)
    assert any(f.table == "the file" and "steps_turn" in f.sentence for f in found)


def test_every_rule_has_its_damage() -> None:
    """No rule is there that no test has seen find anything."""
    shown = {(table, sentence) for _, table, _, sentence in DAMAGE.values()}
    silent = [
        rule
        for rule in store_rules.RULES
        if "is none of" not in rule.sentence
        and not any(t == rule.table and s in rule.sentence for t, s in shown)
    ]
    assert silent == []
