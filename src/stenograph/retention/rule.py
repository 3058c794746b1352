"""A rule of the integrity check, in SQL that finds the rows that break it."""

from dataclasses import dataclass

SETTLED = "('completed', 'failed', 'canceled', 'timed_out')"
SETTLED_RUN = "('completed', 'canceled')"
SETTLED_TASK = "('completed', 'failed', 'canceled', 'timed_out', 'uncertain', 'skipped')"


@dataclass(frozen=True, slots=True)
class Rule:
    """What no row may be: `sql` finds those that are, `sentence` says so to a person.

    The first column of `sql` is the id of the broken row in `table` (for `sessions` and tables
    without ids of their own: of the conversation, task, … they belong to).
    """

    table: str
    sentence: str
    sql: str
