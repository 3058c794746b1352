"""Forks and sides of a conversation."""

from stenograph.conversations import access, fork, side
from stenograph.conversations.access import Conversation, Workspace
from stenograph.errors import InvalidInputError
from stenograph.http import idempotency
from stenograph.http.agent_api import wire_forks
from stenograph.http.agent_api.common import C
from stenograph.http.agent_api.conversation_document import document
from stenograph.http.agent_api.variants import effects
from stenograph.http.context import Ctx
from stenograph.http.route import Answer, Route, post
from stenograph.runs import snapshot
from stenograph.sessions import forking
from stenograph.storage.database import Tx


@post(
    C + "/forks",
    id="forkConversation",
    tag="Conversations",
    body=wire_forks.ForkBody,
    idempotency="required",
    answer=wire_forks.ForkAnswer,
    status=201,
    errors={
        409: "`variant_not_forkable` for a candidate that is under way, `workspace_not_active`,"
        " or the key was used before.",
        422: "`side_of_side`, `fork_too_large` or `validation_failed`.",
    },
)
async def fork_conversation(ctx: Ctx, workspace: str, conversation: str) -> Answer:
    """Fork a conversation at a turn, or open a side beside what is going on.

    A fork shows the turns before the one you name under the same ids, without copying them, and
    has that turn as its own, with a copy of one candidate. How you hide or conceal turns there is
    no matter of the source's, nor the other way round. A `side` shows everything up to now; a turn
    that is under way is in it as it stands, marked `reference`.
    """

    def act(tx: Tx) -> Answer:
        home = access.find_workspace(tx, ctx.caller, workspace)
        source = access.find(tx, ctx.caller, workspace, conversation)
        access.require_full(source)
        sent = idempotency.key(ctx)
        new = ctx.body(wire_forks.ForkBody).fork
        _check(new)

        def make() -> tuple[str, wire_forks.ForkAnswer]:
            made = _made(ctx, tx, home, source, new)
            forking.begin(tx, ctx.caller, source, made)
            return made.public_id, _answer(ctx, tx, made)

        def again(public_id: str) -> wire_forks.ForkAnswer:
            return _answer(ctx, tx, access.find(tx, ctx.caller, workspace, public_id))

        return idempotency.once(tx, sent, make, again)

    return await ctx.write(act)


def _check(new: wire_forks.NewFork) -> None:
    if new.side and (new.turn_public_id or new.variant_public_id):
        raise InvalidInputError("A side names no turn: it is forked at the live head")
    if not new.side and new.turn_public_id is None:
        raise InvalidInputError("Give turn_public_id, or side", code="parameter_missing")


def _made(
    ctx: Ctx, tx: Tx, home: Workspace, source: Conversation, new: wire_forks.NewFork
) -> Conversation:
    if new.turn_public_id is not None:
        return fork.create(
            tx,
            ctx.caller,
            home,
            source,
            new.turn_public_id,
            variant_public_id=new.variant_public_id,
            title=new.title,
        )
    held = fork.hold_source(tx, source)
    running = side.under_way(tx, held)
    taken = None if running is None else snapshot.of(tx, running.variant)
    return side.create(tx, ctx.caller, home, held, running=running, snapshot=taken, title=new.title)


def _answer(ctx: Ctx, tx: Tx, made: Conversation) -> wire_forks.ForkAnswer:
    return wire_forks.ForkAnswer(
        conversation=document(ctx, tx, made).conversation,
        runner_effects=effects(pruned=not fork.effects_known(tx, made)),
    )


routes: list[Route] = [fork_conversation]
