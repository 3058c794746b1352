"""What becomes of a turn's words: other ones in their place, or none."""

from stenograph.conversations import access
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.conversations.limits import refused
from stenograph.conversations.wishes import Entry, TextPart
from stenograph.engine import deck
from stenograph.http.agent_api import wire_turns
from stenograph.http.agent_api.common import T
from stenograph.http.agent_api.variants import one
from stenograph.http.context import Ctx
from stenograph.http.route import Route, delete, post
from stenograph.retention import erasing
from stenograph.storage.database import Tx


@delete(
    T,
    id="deleteTurn",
    tag="Turns",
    errors={
        409: "`apex_only`: it is not the newest turn; `descendant_pinned`: a fork shows it;"
        " `run_live`: something is under way in it; `session_target_unavailable`: an agent"
        " elsewhere records the session; `conversation_archived` or `workspace_not_active`."
    },
)
async def delete_turn(ctx: Ctx, workspace: str, conversation: str, turn: str) -> None:
    """Delete the newest turn for good, with its candidates, their runs and subagents.

    Messages, trajectory and search follow. What it cost stays in the account.
    """

    def act(tx: Tx) -> None:
        erasing.delete_turn(tx, access.find(tx, ctx.caller, workspace, conversation), turn)

    await ctx.write(act)


@post(
    T + "/edit",
    id="editTurn",
    tag="Turns",
    body=wire_turns.EditBody,
    answer=wire_turns.VariantAnswer,
    errors={
        409: "`kernel_authored`: the system wrote this turn; `run_live`: it is being answered;"
        " `conversation_busy`: another one is; `branch_required`: newer turns build on it;"
        " `session_target_unavailable`, `conversation_archived` or `workspace_not_active`.",
        422: "`validation_failed`: not one of `text` and `entries`, or a blank text.",
    },
)
async def edit_turn(
    ctx: Ctx, workspace: str, conversation: str, turn: str
) -> wire_turns.VariantAnswer:
    """Put words in the place of what the newest turn says: a message's, or an answer's.

    They are a new candidate, which the turn shows; what it said before stays in its deck.
    """

    def act(tx: Tx) -> wire_turns.VariantAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        variants.require_own(found, turns.find(tx, found, turn))
        text = _text(ctx.body(wire_turns.EditBody).edit)
        shown = deck.edit(tx, found, turn, text)
        return one(ctx, tx, found, shown.turn, shown.variant)

    return await ctx.write(act)


def _text(new: wire_turns.Edit) -> str:
    if (new.text is None) == (new.entries is None):
        raise refused("An edit has text or entries, not both")
    return new.text if new.text is not None else "\n\n".join(map(_words, new.entries or ()))


def _words(entry: Entry) -> str:
    parts = [part.text for part in entry.told if isinstance(part, TextPart)]
    if len(parts) < max(len(entry.told), 1):
        raise refused("The entries of an edit hold text alone")
    return "\n\n".join(parts)


routes: list[Route] = [delete_turn, edit_turn]
