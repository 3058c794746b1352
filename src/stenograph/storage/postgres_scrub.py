"""Taking deleted bytes out of a PostgreSQL server's files (docs/decisions/0022)."""

import time
from collections.abc import Sequence

import psycopg
from psycopg import errors, sql

from stenograph.storage.database import Row

#: Seconds to wait for readers of old snapshots.
_PATIENCE = 30

#: Whether nobody sees what was deleted before transaction `at`, and nobody will: who comes now
#: sees back to the oldest transaction under way, in whichever database. Who is there: sessions (the
#: server's own included: it samples tables), transactions that were prepared, standbys that say
#: what they read.
_NOBODY = """
SELECT pg_snapshot_xmin(pg_current_snapshot()) > CAST(%(at)s AS xid8) AND NOT EXISTS (
  SELECT 1 FROM (
    SELECT backend_xmin AS held FROM pg_stat_activity WHERE pid <> pg_backend_pid()
      AND (datname = current_database() OR backend_type = 'walsender')
    UNION ALL SELECT xmin FROM pg_replication_slots
    UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
  ) AS there WHERE age(held) >= age(CAST(CAST(%(at)s AS xid8) AS xid)))
"""


def scrub(connection: psycopg.Connection[Row], rewrite: Sequence[str]) -> bool:
    """Write tables anew and empty the log; without tables, let go of deleted rows only.

    False: somebody held on to deleted rows for longer than half a minute, or a right was lacking.
    The connection commits by itself.
    """
    if not rewrite:
        connection.execute("VACUUM")
        return True
    connection.execute(f"SET lock_timeout = '{_PATIENCE}s'")
    try:
        if not _nobody_looks_back(connection):
            return False
        for table in rewrite:
            _write_anew(connection, table)
        _forget_samples(connection, rewrite)
        if not _nobody_looks_back(connection):
            return False
        _write_anew(connection, "pg_statistic")
        _empty_log(connection)
    except (errors.InsufficientPrivilege, errors.LockNotAvailable):
        return False
    finally:
        connection.execute("RESET lock_timeout")
    return True


def _nobody_looks_back(connection: psycopg.Connection[Row]) -> bool:
    """Wait for those who see what was deleted before this moment. False: patience was over.

    To write a table anew under a reader's eyes would hold up everybody, and take along what the
    reader sees.
    """
    found = connection.execute("SELECT CAST(pg_current_xact_id() AS text)").fetchone()
    assert found is not None
    patience = time.monotonic() + _PATIENCE
    while connection.execute(_NOBODY, {"at": found[0]}).fetchone() != (True,):
        if time.monotonic() > patience:
            return False
        time.sleep(0.1)
    return True


def _write_anew(connection: psycopg.Connection[Row], table: str) -> None:
    connection.execute(sql.SQL("VACUUM (FULL) {}").format(sql.Identifier(table)))


def _forget_samples(connection: psycopg.Connection[Row], tables: Sequence[str]) -> None:
    """Have the planner sample tables again: what it has sampled outlives the rows, whole texts
    included."""
    names = sql.SQL(", ").join(map(sql.Identifier, tables))
    with connection.transaction():
        # The lock that sampling takes.
        connection.execute(sql.SQL("LOCK TABLE {} IN SHARE UPDATE EXCLUSIVE MODE").format(names))
        connection.execute(
            "DELETE FROM pg_statistic WHERE starelid IN"
            " (SELECT CAST(name AS regclass) FROM unnest(CAST(%(names)s AS text[])) AS name)",
            {"names": list(tables)},
        )
    connection.execute(sql.SQL("ANALYZE {}").format(names))


def _empty_log(connection: psycopg.Connection[Row]) -> None:
    """Have the server write over its write-ahead log; needs rights that an owner may lack.

    The server uses finished segments again, old bytes and all. So the present one is left, a
    checkpoint hands the finished ones on, and each is gone through once: what stays free of a
    segment that is left early is filled with zeros.
    """

    def leave_segment() -> None:
        connection.execute("SELECT pg_logical_emit_message(false, 'stenograph', 'scrub')")
        connection.execute("SELECT pg_switch_wal()")

    leave_segment()
    connection.execute("CHECKPOINT")
    found = connection.execute("SELECT count(*) FROM pg_ls_waldir()").fetchone()
    assert found is not None
    for _ in range(int(found[0]) + 1):
        leave_segment()
    connection.execute("CHECKPOINT")
