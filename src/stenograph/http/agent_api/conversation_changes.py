"""What becomes of a conversation: its archive, its end, who may see it, where its tools run."""

from collections.abc import Callable

from stenograph.conversations import access, access_list, archive, runner
from stenograph.conversations.access import Conversation
from stenograph.engine import start
from stenograph.http.agent_api import wire
from stenograph.http.agent_api.common import C
from stenograph.http.agent_api.conversation_document import document
from stenograph.http.agent_api.conversations import entries
from stenograph.http.context import Ctx
from stenograph.http.route import Route, delete, post, put
from stenograph.retention import reap
from stenograph.storage.database import Tx

_ARCHIVE_ERRORS = {
    409: "`subagent_follows_parent` or `workspace_not_active`.",
    422: "`side_conversation`: a side is deleted when it has served its time.",
}


async def _changed(
    ctx: Ctx, workspace: str, conversation: str, change: Callable[[Tx, Conversation], None]
) -> wire.ConversationAnswer:
    """Change a conversation the caller has full access to, and write it as it is then."""

    def act(tx: Tx) -> wire.ConversationAnswer:
        found = access.find(tx, ctx.caller, workspace, conversation)
        access.require_full(found)
        change(tx, found)
        return document(ctx, tx, found)

    return await ctx.write(act)


@delete(
    C,
    id="deleteConversation",
    tag="Conversations",
    errors={409: "`conversation_busy` while it or a subagent works, or `subagent_follows_parent`."},
)
async def delete_conversation(ctx: Ctx, workspace: str, conversation: str) -> None:
    """Delete a conversation with its subagents.

    From this moment on nobody finds it. Its text is destroyed after 30 days, that of a side at
    once; what a fork shows of it, when the last such fork is destroyed.
    """

    def act(tx: Tx) -> None:
        found = access.find(tx, ctx.caller, workspace, conversation)
        gone = archive.delete(tx, found)
        if found.side:
            reap.destroy(tx, gone)

    await ctx.write(act)


@post(
    C + "/archive",
    id="archiveConversation",
    tag="Conversations",
    answer=wire.ConversationAnswer,
    errors=_ARCHIVE_ERRORS,
)
async def archive_conversation(
    ctx: Ctx, workspace: str, conversation: str
) -> wire.ConversationAnswer:
    """Archive a conversation with its subagents.

    It is read as before and takes nothing new; what runs goes on to its end.
    """
    return await _changed(ctx, workspace, conversation, archive.archive)


@post(
    C + "/unarchive",
    id="unarchiveConversation",
    tag="Conversations",
    answer=wire.ConversationAnswer,
    errors=_ARCHIVE_ERRORS,
)
async def unarchive_conversation(
    ctx: Ctx, workspace: str, conversation: str
) -> wire.ConversationAnswer:
    """Take a conversation out of the archive."""
    return await _changed(ctx, workspace, conversation, archive.unarchive)


@put(
    C + "/access",
    id="setConversationAccess",
    tag="Conversations",
    body=wire.AccessBody,
    answer=wire.ConversationAnswer,
    errors={
        409: "`entry_limit_reached` or `workspace_not_active`.",
        422: "`principal_not_eligible`: someone does not belong to this workspace.",
    },
)
async def set_access(ctx: Ctx, workspace: str, conversation: str) -> wire.ConversationAnswer:
    """Replace who may see and change a conversation, wholly and at once.

    Who made it and who answers in it keep full access; they are in no list.
    """

    def change(tx: Tx, found: Conversation) -> None:
        new = ctx.body(wire.AccessBody).access
        access_list.replace(tx, found, new.default, entries(new.entries))

    return await _changed(ctx, workspace, conversation, change)


@put(
    C + "/default_runner",
    id="setDefaultRunner",
    tag="Conversations",
    body=wire.DefaultRunnerBody,
    answer=wire.ConversationAnswer,
    errors={
        404: "`runner_not_found`.",
        409: "`runner_not_eligible` for a device that was removed, `conversation_archived` or"
        " `workspace_not_active`.",
    },
)
async def set_default_runner(
    ctx: Ctx, workspace: str, conversation: str
) -> wire.ConversationAnswer:
    """Choose the device whose tools are used from the next turn on; null takes it away."""

    def change(tx: Tx, found: Conversation) -> None:
        new = ctx.body(wire.DefaultRunnerBody).default_runner
        runner.set_default(tx, ctx.caller, found, new.executor_public_id)

    return await _changed(ctx, workspace, conversation, change)


@post(
    C + "/cancellation",
    id="cancelConversation",
    tag="Conversations",
    answer=wire.ConversationAnswer,
    status=202,
    errors={422: "`not_running`: there is nothing to stop."},
)
async def cancel_conversation(
    ctx: Ctx, workspace: str, conversation: str
) -> wire.ConversationAnswer:
    """Stop what is being answered in a conversation, and its subagents."""

    def change(tx: Tx, found: Conversation) -> None:
        for part, turn in archive.under_way(tx, found):
            start.cancel(tx, part, turn)

    return await _changed(ctx, workspace, conversation, change)


routes: list[Route] = [
    delete_conversation,
    archive_conversation,
    unarchive_conversation,
    set_access,
    set_default_runner,
    cancel_conversation,
]
