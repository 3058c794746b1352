"""A session leaves: `exportSessionTrajectory`, and the files that its steps point at."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from litestar import Response
from litestar.response import Stream

from stenograph.errors import NotFoundError
from stenograph.http.context import Ctx
from stenograph.http.parameters import Choice
from stenograph.http.route import Route, get
from stenograph.sessions import secret, session
from stenograph.storage.database import Tx
from stenograph.trajectories.atif.format import Trajectory
from stenograph.trajectories.export import document, store
from stenograph.trajectories.redaction.redactor import Redactor

FORMAT = Choice(
    name="format",
    options=("atif",),
    default="atif",
    about="Document format to export. ATIF v1.7 (Agent Trajectory Interchange Format) is the only"
    " one offered, so omitting it returns the same document.",
)

#: A document up to this many bytes is answered whole, with its length; a longer one is streamed.
WHOLE = 2**20


def _pieces(ctx: Ctx, conversation_id: int, redactor: Redactor) -> Iterator[bytes]:
    """Write the document from one snapshot of the record."""
    with ctx.database.read() as tx:
        yield from document.trajectory(tx, conversation_id, redactor)


def _start(pieces: Iterator[bytes]) -> tuple[list[bytes], bool]:
    """Return the first pieces, and whether they are all."""
    taken: list[bytes] = []
    size = 0
    for piece in pieces:
        taken.append(piece)
        size += len(piece)
        if size > WHOLE:
            return taken, False
    return taken, True


async def _stream(taken: list[bytes], pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    yield b"".join(taken)
    taken.clear()
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece


@get(
    "/organizations/{orgId}/sessions/{sessionId}/trajectory",
    id="exportSessionTrajectory",
    tag="Sessions",
    scope="sessions:read",
    query=[FORMAT],
    answer=Trajectory,
)
async def export_session_trajectory(ctx: Ctx, session_id: str) -> Response[bytes] | Stream:
    """Export session trajectory.

    Export the session trajectory in the Agent Trajectory Interchange Format (ATIF v1.7, RFC 0001):
    steps, user messages, agent reasoning, tool calls and their results, and token and cost
    metrics. Tool calls made from inside a script that the model wrote appear as tool calls linked
    to their parent call by extra.parent_tool_call_id. A standard session masks the run's secret
    values, known credential shapes and any unbroken run of 40 or more letters, digits, - or _,
    which includes hashes. An ephemeral session masks only the run's secret values, as
    [redacted-secret], and credentials this server issues. A tool call's arguments and output are
    exported whole; extra.fidelity counts the redaction markers and the tool events exported from
    a 4,000-character preview. agent.version is the release that ran the latest turn. Each subagent
    Session the session started is embedded in subagent_trajectories, and final_metrics totals
    include them; final_metrics.extra.session_totals holds the session's own.
    """

    def find(tx: Tx) -> tuple[int, str, tuple[str, ...]]:
        found = session.find(tx, ctx.caller, session_id)
        FORMAT.read(ctx.query)
        return found.id, found.mode, secret.values(tx, ctx.sealer, found.id)

    conversation_id, mode, secrets = await ctx.read(find)
    redactor = Redactor(secrets, "ephemeral" if mode == "ephemeral" else "standard")
    pieces = _pieces(ctx, conversation_id, redactor)
    taken, complete = await asyncio.to_thread(_start, pieces)
    if complete:
        return Response(b"".join(taken), media_type="application/json")
    return Stream(_stream(taken, pieces), media_type="application/json")


@get(
    "/organizations/{orgId}/sessions/{sessionId}/media/{name}",
    id="getSessionMedia",
    tag="Sessions",
    scope="sessions:read",
    answer=bytes,
)
async def get_session_media(ctx: Ctx, session_id: str, name: str) -> Response[bytes]:
    """Read an image or audio file of a session.

    Steps of the trajectory name it by `source.path`, which is relative to the trajectory's URL.
    """

    def find(tx: Tx) -> tuple[str, bytes]:
        found = session.find(tx, ctx.caller, session_id)
        media = store.media(tx, store.shown(tx, found.id), f"media/{name}")
        secrets = secret.values(tx, ctx.sealer, found.id)
        # One that holds a secret cannot be masked and stay a file of its kind.
        if media is None or not Redactor(secrets, "ephemeral").clean(media[1]):
            raise NotFoundError("No such file", code="media_not_found")
        return media

    media_type, data = await ctx.read(find)
    # The bytes came with somebody's log: a browser must take them for nothing but what they say.
    headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}
    return Response(data, media_type=media_type, headers=headers)


routes: list[Route] = [export_session_trajectory, get_session_media]
