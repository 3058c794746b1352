"""The check that the record is whole: `steno db check`.

Nothing is repaired: what a finding means for the readings is for a person to judge.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import zstandard

from stenograph.conversations import search_index
from stenograph.retention import store_rules
from stenograph.storage.database import Database, Tx


@dataclass(frozen=True, slots=True)
class Finding:
    """A row that cannot be right: its table, its id there (0: no single row), and why."""

    table: str
    id: int
    sentence: str


def check(database: Database) -> list[Finding]:
    """Look at the whole record, in one snapshot. Returns what is wrong; healthy: nothing."""
    with database.read() as tx:
        return list(findings(tx))


def findings(tx: Tx) -> Iterator[Finding]:
    """As `check`, in a transaction that is open already."""
    yield from _engine(tx)
    for rule in store_rules.RULES:
        for row_id in store_rules.broken(tx, rule):
            yield Finding(rule.table, row_id, rule.sentence)
    yield from _json(tx)
    yield from _originals(tx)
    for found in search_index.disagreements(tx):
        yield Finding(*found)


def _engine(tx: Tx) -> Iterator[Finding]:
    if tx.dialect == "sqlite":
        for found in store_rules.sqlite_faults(tx):
            yield Finding(*found)


def _json(tx: Tx) -> Iterator[Finding]:
    for table, key, column in store_rules.JSON:
        for row_id, text in store_rules.json_values(tx, table, key, column):
            try:
                msgspec.json.decode(text)
            except msgspec.DecodeError as error:
                yield Finding(table, row_id, f"Its {column} is no JSON: {error}.")


def _originals(tx: Tx) -> Iterator[Finding]:
    for row_id, digest, size, compressed in store_rules.originals(tx):
        try:
            data = zstandard.decompress(compressed, max_output_size=size)
        except zstandard.ZstdError as error:
            yield Finding("originals", row_id, f"Its bytes cannot be unpacked: {error}.")
            continue
        if len(data) != size or hashlib.sha256(data).digest() != digest:
            yield Finding("originals", row_id, "Its bytes are not those that were stored.")
