"""Taking deleted bytes out of a PostgreSQL server's files (docs/decisions/0022)."""

import time
from collections.abc import Sequence

import psycopg
from psycopg import errors, sql

from stenograph.storage.database import Row

#: Seconds to wait for readers of old snapshots.
_PATIENCE = 30
#: How often a table is written anew for readers that came in between, as the server's own samplers
#: do.
_TRIES = 3

#: Who may still see rows that were deleted before transaction `at`: sessions (the server's own
#: included: it samples tables), transactions that were prepared, standbys that say what they read.
_OLD_SNAPSHOTS = """
SELECT count(*) FROM (
  SELECT unnest(ARRAY[backend_xmin, backend_xid]) AS held FROM pg_stat_activity
    WHERE pid <> pg_backend_pid()
      AND (datname = current_database() OR backend_type = 'walsender')
  UNION ALL SELECT xmin FROM pg_replication_slots
  UNION ALL SELECT transaction FROM pg_prepared_xacts WHERE database = current_database()
) AS holders WHERE age(held) >= age(CAST(%(at)s AS xid))
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
        if not all(_write_anew(connection, table) for table in rewrite):
            return False
        _forget_samples(connection, rewrite)
        if not _write_anew(connection, "pg_statistic"):
            return False
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
    found = connection.execute("SELECT CAST(pg_current_xact_id() AS xid)::text").fetchone()
    assert found is not None
    patience = time.monotonic() + _PATIENCE
    while connection.execute(_OLD_SNAPSHOTS, {"at": found[0]}).fetchone() != (0,):
        if time.monotonic() > patience:
            return False
        time.sleep(0.1)
    return True


def _write_anew(connection: psycopg.Connection[Row], table: str) -> bool:
    """Write a table anew. False: somebody looks back."""
    for _ in range(_TRIES):
        if not _nobody_looks_back(connection):
            return False
        if _rewrite(connection, table):
            return True
    return False


def _rewrite(connection: psycopg.Connection[Row], table: str) -> bool:
    """Write a table anew. False: deleted rows were taken along, for one who came just now and looks
    back as far as some older transaction."""
    told: list[str] = []

    def listen(said: errors.Diagnostic) -> None:
        if said.message_detail:
            told.append(said.message_detail)

    connection.add_notice_handler(listen)
    try:
        connection.execute(sql.SQL("VACUUM (FULL, VERBOSE) {}").format(sql.Identifier(table)))
    finally:
        connection.remove_notice_handler(listen)
    # "12 dead row versions cannot be removed yet.", in the server's language.
    return bool(told) and all(detail.split()[:1] == ["0"] for detail in told)


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
