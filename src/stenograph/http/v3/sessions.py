"""Sessions: created, listed, read and cancelled."""

from collections.abc import Sequence

from stenograph.clock import parse_iso
from stenograph.engine import start
from stenograph.http.context import Ctx
from stenograph.http.masking import masked
from stenograph.http.parameters import Choice, Cursor, Text
from stenograph.http.route import Route, get, post
from stenograph.http.v3 import lists, wire
from stenograph.http.v3.lists import AFTER, FIRST
from stenograph.ids import is_uuid
from stenograph.sessions import secret, session
from stenograph.sessions.session import Filters, Session
from stenograph.storage.database import Tx

_REASON: Cursor[str] = Cursor(
    name="reason_id",
    decode=lambda text: text if is_uuid(text) else None,
    about="Only sessions of this Reason.",
)
_STATUS = Choice(
    name="status",
    options=("running", "exit", "error", "cancelled", "suspended"),
    default=None,
    about="Only sessions of this status.",
)
_TAG = Text(name="tag", about="Only sessions with this tag.", max_bytes=400)
_CREATED_AFTER: Cursor[int] = Cursor(
    name="created_after",
    decode=parse_iso,
    about="Only sessions created after this moment (RFC 3339).",
)
_CREATED_BEFORE: Cursor[int] = Cursor(
    name="created_before",
    decode=parse_iso,
    about="Only sessions created before this moment (RFC 3339).",
)


@get(
    "/organizations/{orgId}/sessions",
    id="listSessions",
    tag="Sessions",
    scope="sessions:read",
    query=[FIRST, AFTER, _REASON, _STATUS, _TAG, _CREATED_AFTER, _CREATED_BEFORE],
    answer=wire.SessionPage,
)
async def list_sessions(ctx: Ctx) -> wire.SessionPage:
    """List Sessions.

    Those the caller may see, subagents included, the newest in this record first. Cursor-paginated:
    pass `end_cursor` as `after`.
    """
    first, after = FIRST.read(ctx.query), lists.read_cursor(ctx.query, "desc")
    filters = Filters(
        reason_id=_REASON.read(ctx.query),
        status=_STATUS.read(ctx.query),
        tag=_TAG.read(ctx.query),
        created_after=_CREATED_AFTER.read(ctx.query),
        created_before=_CREATED_BEFORE.read(ctx.query),
    )

    def look(tx: Tx) -> tuple[wire.SessionPage, tuple[str, ...]]:
        found = session.listed(tx, ctx.caller, filters, before=after, limit=first + 1)
        kept = found[:first]
        end = lists.cursor("desc", kept[-1].id) if kept else AFTER.read(ctx.query)
        items, secrets = shown(ctx, tx, kept)
        return wire.SessionPage(items, len(found) > first, end), secrets

    return masked(*await ctx.read(look))


@get(
    "/organizations/{orgId}/sessions/{sessionId}",
    id="getSession",
    tag="Sessions",
    scope="sessions:read",
    answer=wire.Session,
)
async def get_session(ctx: Ctx, session_id: str) -> wire.Session:
    """Read a Session.

    `usage` and `cost_usd` are the session's own, without its subagents.
    """

    def look(tx: Tx) -> tuple[wire.Session, tuple[str, ...]]:
        (found,), secrets = shown(ctx, tx, [session.find(tx, ctx.caller, session_id)])
        return found, secrets

    return masked(*await ctx.read(look))


@post(
    "/organizations/{orgId}/sessions/{sessionId}/cancel",
    id="cancelSession",
    tag="Sessions",
    scope="run",
    answer=wire.Session,
)
async def cancel_session(ctx: Ctx, session_id: str) -> wire.Session:
    """Cancel a Session.

    The sessions it started are cancelled with it. A session that has ended stays as it is.
    """

    def act(tx: Tx) -> tuple[wire.Session, tuple[str, ...]]:
        (found,), secrets = shown(ctx, tx, [start.cancel_session(tx, ctx.caller, session_id)])
        return found, secrets

    return masked(*await ctx.write(act))


def shown(ctx: Ctx, tx: Tx, found: Sequence[Session]) -> tuple[list[wire.Session], tuple[str, ...]]:
    """Return sessions as they are written, and the secret values to be masked in them."""
    details = session.details(tx, found)
    organization = ctx.caller.organization_public_id
    items = [wire.as_session(organization, s, details[s.id]) for s in found]
    return items, secret.values_many(tx, ctx.sealer, [s.id for s in found])


routes: list[Route] = [list_sessions, get_session, cancel_session]
