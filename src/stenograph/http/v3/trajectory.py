"""A session leaves: `exportSessionTrajectory`, and the files that its steps point at."""

import asyncio
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import SpooledTemporaryFile

from litestar import Response
from litestar.exceptions import HTTPException
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

#: Bytes of a document that are held in memory; a longer one is put together in a nameless file.
WHOLE = 2**20
#: Bytes that are sent at once.
_PIECE = 2**20


class _Document:
    """The bytes of a document; whoever lets go of it last, in whatever way, closes the file."""

    def __init__(self, folder: Path) -> None:
        within = str(folder) if folder.is_dir() else None
        self.file = SpooledTemporaryFile(WHOLE, dir=within)  # noqa: SIM115
        weakref.finalize(self, self.file.close)


def _written(ctx: Ctx, conversation_id: int, redactor: Redactor) -> _Document:
    """Write the document from one snapshot of the record, all before any of it is sent.

    A reader takes its time, or never comes back, and must not hold a snapshot meanwhile: on
    PostgreSQL ten of them would hold every connection, on SQLite one keeps the log from shrinking.
    """
    made = _Document(ctx.settings.data)
    try:
        with ctx.database.read() as tx:
            for piece in document.trajectory(tx, conversation_id, redactor):
                made.file.write(piece)
    except OSError as error:
        raise HTTPException(status_code=503, detail=str(error)) from error
    return made


async def _sent(made: _Document) -> AsyncIterator[bytes]:
    made.file.seek(0)
    while piece := await asyncio.to_thread(made.file.read, _PIECE):
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
    made = await asyncio.to_thread(_written, ctx, conversation_id, redactor)
    size = made.file.tell()
    if size > WHOLE:
        length = {"Content-Length": str(size)}
        return Stream(_sent(made), media_type="application/json", headers=length)
    made.file.seek(0)
    return Response(made.file.read(), media_type="application/json")


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
