"""A log enters, `importSession`; an agent that runs elsewhere is recorded, `recordSessionSteps`."""

import asyncio

import msgspec

from stenograph.errors import InvalidInputError
from stenograph.http.context import Ctx
from stenograph.http.masking import masked
from stenograph.http.parameters import Choice, Text
from stenograph.http.route import Answer, Route, post
from stenograph.sessions import secret, session
from stenograph.storage.database import Tx
from stenograph.trajectories.importers.discovery import read_bytes
from stenograph.trajectories.recording import live
from stenograph.trajectories.recording.record import record
from stenograph.trajectories.recording.session import Mode, Recorded

FORMAT = Choice(
    name="format",
    options=("atif", "claude-code", "codex"),
    default=None,
    about="What the bytes are; left out, it is found by their content.",
)
MODE: Choice[Mode] = Choice(
    name="mode",
    options=("standard", "ephemeral"),
    default="standard",
    about="How exports of the session are masked.",
)
SECRETS = Text(
    name="secrets",
    about="Names of organization secrets whose values are masked in every reading, with commas.",
)


class ImportedSession(msgspec.Struct):
    """What became of one session of the log; `change` is created, grown or unchanged.

    `kept_aside` counts by kind what is no step and stays in the original bytes.
    """

    session_id: str
    parent_session_id: str | None
    workspace_id: str
    conversation_id: str
    format: str
    title: str | None
    change: str
    turns: int
    steps: int
    kept_aside: dict[str, int]
    replaced_characters: int
    warnings: list[str]


class ImportReport(msgspec.Struct):
    """The sessions of a log, a parent before its subagents."""

    sessions: list[ImportedSession]


def as_wire(recorded: Recorded) -> ImportedSession:
    return msgspec.convert(recorded, ImportedSession, from_attributes=True)


@post(
    "/organizations/{orgId}/sessions/import",
    id="importSession",
    tag="Sessions",
    scope="run",
    query=[FORMAT, MODE, SECRETS],
    body=bytes,
    media_types=("application/json", "application/x-ndjson", "application/octet-stream"),
    status=201,
    answer=ImportReport,
    also={200: ImportReport},
)
async def import_session(ctx: Ctx) -> Answer:
    """Import a log.

    The body is the bytes of an agent's log (Claude Code or Codex) or of an ATIF document, as they
    are on disk. Importing the same bytes again changes nothing and answers 200; a log that has
    grown adds what is new.
    """
    log_format, mode = FORMAT.read(ctx.query), MODE.read(ctx.query)
    names = [name for name in (SECRETS.read(ctx.query) or "").split(",") if name]
    if not ctx.raw:
        raise InvalidInputError("The body is empty", code="invalid_request")
    # Looked at first, so that no error tells what was found in the log.
    await ctx.read(lambda tx: secret.take(tx, ctx.caller, ctx.sealer, names))
    drafts = await asyncio.to_thread(read_bytes, ctx.raw, log_format)

    def keep(tx: Tx) -> tuple[list[Recorded], tuple[str, ...]]:
        sealed = secret.take(tx, ctx.caller, ctx.sealer, names)
        values = secret.opened(ctx.sealer, sealed)
        kept = [
            recorded
            for draft in drafts
            for recorded in record(
                tx,
                ctx.caller,
                draft,
                mode=mode,
                secrets=sealed,
                values=values,
            )
        ]
        return kept, values

    recorded, values = await ctx.write(keep)
    report = ImportReport([as_wire(found) for found in recorded])
    changed = any(found.change != "unchanged" for found in recorded)
    return Answer(masked(report, values), status=201 if changed else 200)


class Appended(msgspec.Struct):
    """How many of the steps are new and how many were there; `status` is the session's."""

    session_id: str
    appended: int
    unchanged: int
    last_step_id: int
    status: str


@post(
    "/organizations/{orgId}/sessions/{sessionId}/steps",
    id="recordSessionSteps",
    tag="Sessions",
    scope="run",
    body=bytes,
    answer=Appended,
    errors={409: "A step is there with another content, or the session takes no more."},
)
async def record_session_steps(ctx: Ctx, session_id: str) -> Appended:
    """Record steps of an agent that runs elsewhere.

    The body is `{"steps": [step, …]}` with ATIF steps (or one step alone), numbered by `step_id`
    from 1 through the whole session. A step that is there already is accepted again when it is
    the same. `{"finish": {"status": "exit", "outcome": "success", "result_summary": "…"}}`, alone
    or with the last steps, ends the session.
    """

    def keep(tx: Tx) -> live.Appended:
        found = session.find(tx, ctx.caller, session_id)
        session.require_control(ctx.caller, found)
        return live.append(tx, found.id, sent)

    def prepare_error(tx: Tx) -> None:
        """That it is not there, or not the caller's, comes first; its secrets are in no error."""
        found = session.find(tx, ctx.caller, session_id)
        session.require_control(ctx.caller, found)
        secret.values(tx, ctx.sealer, found.id)

    try:
        sent = live.read_steps(ctx.raw)
        done = await ctx.write(keep)
    except Exception:
        await ctx.read(prepare_error)
        raise
    return Appended(session_id, done.appended, done.unchanged, done.last_step_id, done.status)


routes: list[Route] = [import_session, record_session_steps]
