"""What the lists of this family have in common (reason-api.md 4)."""

from collections.abc import Mapping

from stenograph.http.paging import Direction, keyset_cursor, parse_keyset_cursor
from stenograph.http.parameters import Cursor, Integer
from stenograph.sessions.messages import invalid_cursor

FIRST = Integer(
    name="first",
    default=50,
    low=1,
    high=200,
    about="How many items one page holds, up to 200.",
)
AFTER: Cursor[str] = Cursor(
    name="after",
    decode=str,
    about="Cursor from a previous page's `end_cursor`: return only what follows it.",
)


def cursor(direction: Direction, row_id: int) -> str:
    """The cursor after a row of a list that is ordered by row id."""
    return keyset_cursor(direction, id=row_id)


def read_cursor(query: Mapping[str, str], direction: Direction) -> int | None:
    """Return the row id that a page starts after; `invalid_cursor` for what is no such cursor."""
    text = AFTER.read(query)
    if text is None:
        return None
    found = parse_keyset_cursor(text, direction, {"id": int})
    if found is None or found["id"] < 1:
        raise invalid_cursor()
    return int(found["id"])
