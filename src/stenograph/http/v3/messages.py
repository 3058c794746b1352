"""What is said in a Reason and in a session, and saying something."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stenograph.errors import ConflictError, InvalidInputError
from stenograph.http import idempotency
from stenograph.http.context import Ctx
from stenograph.http.masking import masked
from stenograph.http.parameters import Cursor, Integer
from stenograph.http.route import Answer, Route, get, post
from stenograph.http.v3 import wire
from stenograph.http.v3.models import effort, known_model
from stenograph.http.v3.wire import ConversationItem, ReasonMessagePage, SessionConversationPage
from stenograph.sessions import messages, reason, secret, sending, session
from stenograph.sessions.messages import Item
from stenograph.sessions.sending import NewMessage
from stenograph.storage.database import Tx

FIRST = Integer(
    name="first",
    default=50,
    low=1,
    high=200,
    about="How many conversation items one page holds, up to 200.",
)


def _after(whose: str) -> Cursor[str]:
    return Cursor(
        name="after",
        decode=str,
        about="Cursor from a previous page's `end_cursor` (or an item's `cursor`): return only what"
        f" follows it. Keep polling with the last `end_cursor` to receive the {whose}'s next"
        " replies.",
    )


_REASON_AFTER, _SESSION_AFTER = _after("Reason"), _after("Session")
_BAD_CURSOR = {400: "`after` is not a cursor this list could have issued (`invalid_cursor`)."}


@get(
    "/organizations/{orgId}/reasons/{reasonId}/messages",
    id="listReasonMessages",
    tag="Reasons",
    scope="sessions:read",
    query=[FIRST, _REASON_AFTER],
    answer=ReasonMessagePage,
    errors=_BAD_CURSOR,
)
async def list_reason_messages(ctx: Ctx, reason_id: str) -> ReasonMessagePage:
    """List a Reason's messages.

    Returns the Reason's conversation in order, as listSessionConversation returns its conversation
    Session's: the opening prompt, each message sent to it, and one reply for every finished turn,
    failed or cancelled turns included, with `kind` telling them apart. The page is empty, with
    `session_id` null, until the conversation is opened by its first message. Cursor-paginated:
    pass `end_cursor` as `after`, and keep polling with it to receive the Reason's next reply.
    Readable by the Reason's owner and the people it is shared with.
    """

    def look(tx: Tx) -> tuple[ReasonMessagePage, tuple[str, ...]]:
        found = reason.find(tx, ctx.caller, reason_id)
        first, after = FIRST.read(ctx.query), _REASON_AFTER.read(ctx.query)
        if found.conversation_id is None:
            if after is not None:
                raise messages.invalid_cursor()
            return ReasonMessagePage([], False, None, found.public_id, None), ()
        page = messages.page(tx, found.conversation_id, after, first)
        answer = ReasonMessagePage(
            [wire.item(item) for item in page.items],
            page.has_next_page,
            page.end_cursor,
            found.public_id,
            found.session_public_id,
        )
        return answer, secret.values(tx, ctx.sealer, found.conversation_id)

    return masked(*await ctx.read(look))


@get(
    "/organizations/{orgId}/sessions/{sessionId}/conversation",
    id="listSessionConversation",
    tag="Sessions",
    scope="sessions:read",
    query=[FIRST, _SESSION_AFTER],
    answer=SessionConversationPage,
    errors=_BAD_CURSOR,
)
async def list_session_conversation(ctx: Ctx, session_id: str) -> SessionConversationPage:
    """List a Session's conversation.

    Returns the conversation in order: the opening prompt, each message sent to it, and one reply
    for every finished turn, failed or cancelled turns included, with `kind` telling them apart.
    Cursor-paginated: pass `end_cursor` as `after`, and keep polling with it to receive the next
    reply. A turn that was concealed or hidden is not in the list.
    """

    def look(tx: Tx) -> tuple[SessionConversationPage, tuple[str, ...]]:
        found = session.find(tx, ctx.caller, session_id)
        first, after = FIRST.read(ctx.query), _SESSION_AFTER.read(ctx.query)
        page = messages.page(tx, found.id, after, first)
        answer = SessionConversationPage(
            [wire.item(item) for item in page.items],
            page.has_next_page,
            page.end_cursor,
            found.public_id,
        )
        return answer, secret.values(tx, ctx.sealer, found.id)

    return masked(*await ctx.read(look))


class MessageBody(msgspec.Struct):
    """A message, and how its turn is to be answered."""

    message: str
    model: str | None = None
    reasoning_effort: wire.Effort | str | None = None
    attachments: Annotated[list[dict[str, Any]], Meta(max_length=50)] | None = None
    idempotency_key: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


_CONFLICT = {409: "The key was used with another message, or the session runs elsewhere."}


@post(
    "/organizations/{orgId}/reasons/{reasonId}/messages",
    id="sendReasonMessage",
    tag="Reasons",
    scope="run",
    body=MessageBody,
    status=202,
    answer=ConversationItem,
    errors=_CONFLICT,
)
async def send_reason_message(ctx: Ctx, reason_id: str) -> Answer:
    """Send a message to a Reason.

    The first message opens the Reason's conversation and becomes its prompt. Its turn waits until
    an engine answers it; what is sent meanwhile belongs to the same turn. Only the Reason's owner
    may send. The same `idempotency_key` with the same message acts once within 24 hours.
    """
    await ctx.read(
        lambda tx: reason.require_own(ctx.caller, reason.find(tx, ctx.caller, reason_id))
    )
    sent = _read(ctx)

    def conversation(tx: Tx) -> int:
        found = reason.find(tx, ctx.caller, reason_id)
        return found.conversation_id or 0

    return await _send(
        ctx,
        f"sendReasonMessage {reason_id}",
        conversation,
        lambda tx: sending.to_reason(tx, ctx.caller, reason_id, sent),
    )


@post(
    "/organizations/{orgId}/sessions/{sessionId}/messages",
    id="sendSessionMessage",
    tag="Sessions",
    scope="run",
    body=MessageBody,
    status=202,
    answer=ConversationItem,
    errors=_CONFLICT,
)
async def send_session_message(ctx: Ctx, session_id: str) -> Answer:
    """Send a message to a Session.

    Its turn waits until an engine answers it; what is sent meanwhile belongs to the same turn. A
    session whose agent runs elsewhere takes none (`session_target_unavailable`).
    """
    await ctx.read(
        lambda tx: session.require_control(ctx.caller, session.find(tx, ctx.caller, session_id))
    )
    sent = _read(ctx)
    return await _send(
        ctx,
        f"sendSessionMessage {session_id}",
        lambda tx: session.find(tx, ctx.caller, session_id).id,
        lambda tx: sending.to_session(tx, ctx.caller, session_id, sent),
    )


def _read(ctx: Ctx) -> NewMessage:
    body = ctx.body(MessageBody)
    if not body.message.strip():
        raise InvalidInputError("The message is empty", code="message_required")
    return NewMessage(
        body.message, known_model(ctx, body.model), effort(body.reasoning_effort), body.attachments
    )


async def _send(
    ctx: Ctx, scope: str, conversation: Callable[[Tx], int], send: Callable[[Tx], Item]
) -> Answer:
    """Send once; the answer is the item as it is now. `conversation` finds where it lies."""
    key = ctx.body(MessageBody).idempotency_key
    once = None
    if key is not None:
        digest = idempotency.digest(ctx.raw)
        once = idempotency.Key(ctx.caller.principal_id, scope, key, digest)

    def act(tx: Tx) -> Answer:
        def new() -> tuple[str, Item]:
            made = send(tx)
            return made.public_id, made

        def again(public_id: str) -> Item:
            return messages.find(tx, conversation(tx), public_id)

        try:
            answer = idempotency.once(tx, once, new, again, status=202)
        except ConflictError as error:
            if error.code != "idempotency_envelope_mismatch":
                raise
            raise ConflictError(error.message, code="idempotency_profile_conflict") from None
        secrets = secret.values(tx, ctx.sealer, conversation(tx))
        return Answer(masked(wire.item(answer.value), secrets), 202, answer.headers)

    return await ctx.write(act)


routes: list[Route] = [
    list_reason_messages,
    send_reason_message,
    list_session_conversation,
    send_session_message,
]
