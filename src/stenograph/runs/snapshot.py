"""What a candidate that is under way has brought so far, as text that stays."""

from collections.abc import Iterator

from stenograph.conversations.side import Snapshot
from stenograph.conversations.variant import Variant
from stenograph.runs import store_snapshot as store
from stenograph.storage.database import Row, Tx

#: How many of the newest rounds are told, and characters of each call's arguments and result.
ROUNDS = 50
EXCERPT = 2_000


def of(tx: Tx, candidate: Variant) -> Snapshot:
    """Return the words that a candidate has said, and those with what it called and was told.

    Only what has its end is in it: a model call that goes on has said nothing yet. Three queries,
    however many rounds; nothing hidden is told.
    """
    rounds = store.rounds(tx, candidate.id, ROUNDS)
    calls: dict[int, list[Row]] = {}
    for row in store.calls(tx, [row[0] for row in rounds], EXCERPT):
        calls.setdefault(row[0], []).append(row)
    said = [row[2] for row in rounds if row[2]]
    told = [(row[1], entry) for row in rounds for entry in _round(row, calls.get(row[0], []))]
    told += [(position, f"[message] {text}") for position, text in store.steers(tx, candidate.id)]
    told.sort(key=lambda entry: entry[0])
    return Snapshot("\n\n".join(said) or None, "\n".join(entry for _, entry in told))


def _round(row: Row, calls: list[Row]) -> Iterator[str]:
    if row[2]:
        yield f"[reply] {row[2]}"
    for _, name, status, arguments, result in calls:
        yield f"[call] {name} {arguments or '{}'}: {status}"
        if result:
            yield result
