"""Sealed requests: each is read back as it was sent, and together they take room once."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import story
from people import Org
from stenograph.runs import invocation, request, task
from stenograph.storage.database import Database, Tx

MODEL = story.THINKER
#: What a round does to the entries of the one before it: adds some, cuts some away, changes one.
CHANGES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans(), st.text(max_size=20)),
    min_size=1,
    max_size=12,
)


def _sent(changes: list[tuple[int, int, bool, str]]) -> list[list[Any]]:
    """The entries of each round."""
    rounds, entries = [], [{"role": "user", "parts": [{"type": "text", "text": "Look."}]}]
    for added, cut, altered, text in changes:
        entries = [*entries[: max(0, len(entries) - cut)]]
        entries += [{"role": "tool", "parts": [text, number]} for number in range(added)]
        if altered and entries:
            entries = [{"role": "system", "parts": [text]}, *entries[1:]]
        rounds.append(entries)
    return rounds


def _seal(tx: Tx, where: story.Place, rounds: list[list[Any]]) -> list[int]:
    said = story.open_run(tx, where)
    assert said.run is not None
    made = []
    for number, entries in enumerate(rounds):
        added = task.add_round(tx, said.run)
        calls = [invocation.select(tx, said.run, added, MODEL) for _ in range(1 + number % 2)]
        for call in calls:
            invocation.seal(tx, call, entries, {"round": number})
            made.append(call.id)
        for call in calls:
            invocation.settle(tx, call, "completed", message="")
        task.settle(tx, said.run, added)
    story.finish(tx, said)
    return made


@given(changes=CHANGES)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_each_request_is_read_as_it_was_sent(
    database: Database, org: Org, changes: list[tuple[int, int, bool, str]]
) -> None:
    where = story.place(database, org.owner)
    rounds = _sent(changes)
    made = database.write(lambda tx: _seal(tx, where, rounds))
    expected = [
        (entries, {"round": number})
        for number, entries in enumerate(rounds)
        for _ in range(1 + number % 2)
    ]
    with database.read() as tx:
        found = [request.read(tx, row_id) for row_id in made]
    assert [(it.entries, it.request_options) for it in found] == expected


def test_what_all_rounds_send_is_kept_once(database: Database, org: Org) -> None:
    where = story.place(database, org.owner)
    word = "a word that every request of the run holds"
    entries = [{"role": "user", "parts": [word]}]
    rounds = [[*entries, *({"role": "tool", "parts": [n]} for n in range(k))] for k in range(20)]
    database.write(lambda tx: _seal(tx, where, rounds))
    with database.read() as tx:
        kept = tx.rows("SELECT request FROM invocation_details")
    assert sum(text.count(word) for (text,) in kept) == 1
    assert len(kept) == 30
