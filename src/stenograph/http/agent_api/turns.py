"""Turns of a conversation, its own and inherited."""

from stenograph import clock
from stenograph.conversations import access, side
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.access import Conversation
from stenograph.conversations.turn import Listed
from stenograph.errors import InvalidInputError, NotFoundError
from stenograph.http.agent_api import wire_turns
from stenograph.http.agent_api.common import (
    INCLUDE_HIDDEN,
    STRICT_PAGE,
    C,
    Mask,
    T,
    mask,
    speaker,
)
from stenograph.http.agent_api.variants import Around, around
from stenograph.http.agent_api.variants import write as write_variant
from stenograph.http.context import Ctx
from stenograph.http.parameters import Integer, invalid
from stenograph.http.route import Route, get, patch
from stenograph.storage.database import Tx

_MAX = 2**31 - 1
AFTER = Integer(
    name="after_position", high=_MAX, lenient=True, about="Only turns behind this position."
)
BEFORE = Integer(
    name="before_position",
    high=_MAX,
    lenient=True,
    about="Only turns before this position, the nearest ones.",
)


def _write(
    ctx: Ctx, tx: Tx, conversation: Conversation, listed: list[Listed]
) -> list[wire_turns.Turn]:
    """Write turns with their candidates and runs; the same few queries however many."""
    cover = mask(ctx, tx, [conversation.id])
    shown = variants.shown(tx, [one.turn for one in listed])
    known = around(tx, [v for found in shown.values() for v in found], cover)
    snapshots = side.references(tx, conversation)
    written = [_turn(one, shown.get(one.turn.id, []), known, cover) for one in listed]
    for one, turn in zip(listed, written, strict=True):
        turn.reference = one.turn.id in snapshots
        if one.turn.position == 0 and one.turn.origin == "agent":
            _name_sender(turn, turns.sender(tx, conversation))
    return written


def _name_sender(turn: wire_turns.Turn, sender: turns.Sender | None) -> None:
    if sender is not None:
        turn.sender_conversation_public_id = sender.conversation
        turn.sender_run_public_id = sender.run
        turn.sender_task_key = sender.task_key


def _turn(
    listed: Listed,
    shown: list[variants.Variant],
    known: Around,
    cover: Mask,
) -> wire_turns.Turn:
    turn = listed.turn
    active = running = None
    for it in shown:
        if it.id == turn.active_variant_id:
            active = it
        elif running is None:
            running = it
    return wire_turns.Turn(
        public_id=turn.public_id,
        input_public_id=listed.input,
        callback_sources=[],
        position=turn.position,
        kind=turn.kind,
        role=turn.role,
        status=turn.status,
        visibility=turn.visibility,
        inherited=turn.inherited,
        origin=turn.origin,
        answering_user_public_id=listed.answerer,
        speaker=speaker(listed.speaker),
        active_variant=None if active is None else write_variant(active, known, cover),
        running_variant=None if running is None else write_variant(running, known, cover),
        created_at=clock.iso_seconds(turn.created_at),
    )


@get(
    C + "/turns",
    id="listTurns",
    tag="Turns",
    query=[STRICT_PAGE, AFTER, BEFORE, INCLUDE_HIDDEN],
    answer=wire_turns.Turns,
)
async def list_turns(ctx: Ctx, workspace: str, conversation: str) -> wire_turns.Turns:
    """List turns in order of position.

    Without a position from the oldest on; `after_position` reads on from there, `before_position`
    takes the nearest older ones. Give one of the two.
    """

    def look(tx: Tx) -> wire_turns.Turns:
        found = access.find(tx, ctx.caller, workspace, conversation)
        limit = STRICT_PAGE.read(ctx.query)
        after, before = AFTER.find(ctx.query), BEFORE.find(ctx.query)
        if after is not None and before is not None:
            raise invalid("before_position")
        hidden = INCLUDE_HIDDEN.read(ctx.query)
        page = turns.window(tx, found, after=after, before=before, limit=limit, hidden=hidden)
        return wire_turns.Turns(
            turns=_write(ctx, tx, found, page),
            pagination=wire_turns.PositionPagination(
                before_position=page[0].turn.position if page else None,
                after_position=page[-1].turn.position if page else None,
            ),
        )

    return await ctx.read(look)


@get(T, id="getTurn", tag="Turns", query=[INCLUDE_HIDDEN], answer=wire_turns.TurnAnswer)
async def get_turn(ctx: Ctx, workspace: str, conversation: str, turn: str) -> wire_turns.TurnAnswer:
    """Read one turn; a hidden one only with `include_hidden`."""

    def look(tx: Tx) -> wire_turns.TurnAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        named = turns.find(tx, found, turn)
        if not INCLUDE_HIDDEN.read(ctx.query) and named.visibility == "hidden":
            raise NotFoundError("Not found")
        (written,) = _write(ctx, tx, found, [turns.look(tx, found, named)])
        return wire_turns.TurnAnswer(turn=written)

    return await ctx.read(look)


@patch(
    T,
    id="setTurnViewState",
    tag="Turns",
    body=wire_turns.TurnBody,
    answer=wire_turns.TurnNameAnswer,
    errors={
        409: "`apex_never_conceals`: no fork shows this newest turn; or `workspace_not_active`."
    },
)
async def set_view_state(
    ctx: Ctx, workspace: str, conversation: str, turn: str
) -> wire_turns.TurnNameAnswer:
    """Hide a turn, leave it out of the context, or conceal it; in a fork, for the fork only."""

    def act(tx: Tx) -> wire_turns.TurnNameAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        turns.find(tx, found, turn, concealed=found.level == "full")
        access.require_full(found)
        state = ctx.body(wire_turns.TurnBody).turn
        if state.visibility is None and state.concealed is None:
            raise InvalidInputError("Give visibility or concealed", code="parameter_missing")
        changed = turns.set_view_state(
            tx, found, turn, visibility=state.visibility, concealed=state.concealed
        )
        return wire_turns.TurnNameAnswer(
            turn=wire_turns.TurnName(public_id=changed.public_id, inherited=changed.inherited)
        )

    return await ctx.write(act)


routes: list[Route] = [list_turns, get_turn, set_view_state]
