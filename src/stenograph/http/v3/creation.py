"""`createSession`."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stenograph.devices import target
from stenograph.engine import start
from stenograph.errors import InvalidInputError
from stenograph.http.context import Ctx
from stenograph.http.masking import mask_text, masked
from stenograph.http.route import Answer, Route, post
from stenograph.http.v3 import wire
from stenograph.http.v3.models import effort, known_model, model
from stenograph.http.v3.sessions import shown
from stenograph.sessions import creation, reason, secret, sending, session, store
from stenograph.sessions.creation import Key, NewSession
from stenograph.sessions.reason import Reason
from stenograph.storage.database import Tx
from stenograph.trajectories.atif.format import Step
from stenograph.trajectories.recording import live

_Word = Annotated[str, Meta(min_length=1, max_length=200)]


class RecordedAgent(msgspec.Struct, omit_defaults=True):
    """The agent that runs elsewhere, as exports name it (ATIF `agent`)."""

    name: _Word
    version: _Word
    model_name: _Word | None = None
    extra: dict[str, Any] | None = None


class NewSessionBody(msgspec.Struct):
    """What a session is created with."""

    prompt: str | None = None
    recorded: Annotated[
        bool,
        Meta(
            description="The agent runs elsewhere, and is recorded step by step with"
            " recordSessionSteps. A `prompt` becomes step 1."
        ),
    ] = False
    agent: RecordedAgent | None = None
    mode: wire.Mode = "standard"
    title: Annotated[str, Meta(max_length=500)] | None = None
    tags: Annotated[list[_Word], Meta(max_length=50)] = []
    model: str | None = None
    reasoning_effort: wire.Effort | str | None = None
    reason_id: str | None = None
    secrets: Annotated[list[str], Meta(max_length=100)] = []
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=255)] | None = None
    completion_mode: str | None = None
    execution_budget: dict[str, Any] | None = None
    workspace_ownership: str | None = None
    target: dict[str, Any] | None = None
    session_policy: Any = None
    experimental_runtime_profile: str | None = None
    experimental_runtime_features: list[str] | None = None


#: What says where a session runs, rather than what it does.
_TARGET = ("target", "workspace_ownership", "mode", "recorded", "agent")
#: What is kept to be echoed.
_OPTIONS = (
    "completion_mode", "execution_budget", "workspace_ownership", "target", "session_policy",
    "experimental_runtime_profile", "experimental_runtime_features",
)  # fmt: skip
_NOBODY = {"name": "unknown", "version": "unknown"}


@post(
    "/organizations/{orgId}/sessions",
    id="createSession",
    tag="Sessions",
    scope="run",
    body=NewSessionBody,
    status=201,
    answer=wire.Session,
    also={200: wire.Session},
    errors={
        409: "No worker can run it (`headless_workers_unavailable`), or the key was used with"
        " another body (`idempotency_profile_conflict`, `idempotency_target_conflict`)."
    },
)
async def create_session(ctx: Ctx) -> Answer:
    """Create a Session.

    An agent of this server begins to work on the `prompt` at once; with a `target` it has the
    tools of a worker. With `recorded`, a session of an agent that runs elsewhere: send its steps
    with recordSessionSteps, from `step_id` 1, or from 2 after a `prompt`. The same
    `idempotency_key` with the same body answers the same session, with 200.
    """
    body = ctx.body(NewSessionBody)
    _check(ctx, body)
    fields = msgspec.to_builtins(body)
    key = _key(body, fields)

    def act(tx: Tx) -> tuple[wire.Session, tuple[str, ...], int]:
        public_id = None if key is None else creation.repeated(tx, ctx.caller, key)
        status = 200
        if public_id is None:
            public_id, status = _create(ctx, tx, body, fields, key), 201
        (made,), secrets = shown(ctx, tx, [session.find(tx, ctx.caller, public_id)])
        return made, secrets, status

    made, secrets, status = await ctx.write(act)
    return Answer(masked(made, secrets), status)


def _check(ctx: Ctx, body: NewSessionBody) -> None:
    has_prompt = body.prompt is not None and bool(body.prompt.strip())
    if not has_prompt and (not body.recorded or body.prompt is not None):
        raise InvalidInputError("A session needs a prompt", code="prompt_required")
    if body.recorded:
        model(body.model)
    else:
        known_model(ctx, body.model)
    effort(body.reasoning_effort)
    if not all(tag.isprintable() for tag in body.tags):
        raise InvalidInputError("A tag is one line", code="invalid_tags")


def _create(ctx: Ctx, tx: Tx, body: NewSessionBody, fields: dict[str, Any], key: Key | None) -> str:
    """Make the session with its first step, and return its public id."""
    owner = None
    if body.reason_id is not None:
        owner = reason.require_own(ctx.caller, reason.find(tx, ctx.caller, body.reason_id))
    agent: dict[str, Any] = msgspec.to_builtins(body.agent) if body.agent else _NOBODY
    given = secret.take(tx, ctx.caller, ctx.sealer, body.secrets)
    # Masked before it is cut: half a secret would be in no list of secrets.
    prompt = mask_text(body.prompt or "", secret.opened(ctx.sealer, given))
    new = NewSession(
        mode=body.mode,
        title=body.title or sending.title(prompt),
        tags=body.tags,
        model=body.model or _usual_model(body, owner),
        reasoning_effort=body.reasoning_effort,
        reason=owner,
        agent=agent if body.recorded else None,
        secrets=given,
        options={name: fields[name] for name in _OPTIONS if fields[name] is not None},
        key=key,
    )
    if not body.recorded:
        where = target.choose(tx, ctx.caller, body.target)
        opened = start.open_session(tx, ctx.caller, new, body.prompt or "")
        target.give(tx, opened.id, where)
        return opened.public_id
    conversation_id = creation.create(tx, ctx.caller, new)
    if body.prompt is not None:
        step = Step(step_id=1, source="user", message=body.prompt)
        live.append(tx, conversation_id, live.Sent([step], None))
    return store.public_id(tx, conversation_id)


def _usual_model(body: NewSessionBody, owner: Reason | None) -> str | None:
    if body.recorded:
        return None if body.agent is None else body.agent.model_name
    return None if owner is None else owner.default_model


def _key(body: NewSessionBody, fields: dict[str, Any]) -> Key | None:
    if body.idempotency_key is None:
        return None
    target = {name: fields.pop(name) for name in _TARGET}
    profile = {name: value for name, value in fields.items() if name != "idempotency_key"}
    fields |= target
    return creation.key(body.idempotency_key, profile, target)


routes: list[Route] = [create_session]
