"""What people do to a run: stop it, give it up, take it up again."""

from collections.abc import Callable

from stenograph.conversations import access
from stenograph.conversations.access import Conversation
from stenograph.engine import retrying
from stenograph.http.agent_api import wire_runs
from stenograph.http.agent_api.common import mask
from stenograph.http.agent_api.runs import R, write
from stenograph.http.agent_api.variants import EXPIRED
from stenograph.http.context import Ctx
from stenograph.http.route import Route, post
from stenograph.runs import run as runs
from stenograph.runs.run import Run
from stenograph.storage.database import Tx

_RETRY_ERRORS = {
    409: "`not_terminal`: it has no end yet; `run_settled`: the run did not fail, or somebody gave"
    " it up; `not_eligible`: another task failed; `unsupported_turn_type`: it sums up;"
    " `run_live`, `conversation_busy`: something is being answered; `branch_required`: newer turns"
    " build on its turn; `session_target_unavailable`, `conversation_archived` or"
    " `workspace_not_active`.",
    410: EXPIRED,
}


async def _changed(
    ctx: Ctx, workspace: str, run: str, change: Callable[[Tx, Conversation, Run], Run]
) -> wire_runs.RunAnswer:
    """Change a run of a conversation the caller has full access to, and write it as it is then."""

    def act(tx: Tx) -> wire_runs.RunAnswer:
        conversation, found = runs.find(tx, ctx.caller, workspace, run)
        access.require_full(conversation)
        runs.require_details(found)
        changed = change(tx, conversation, found)
        return wire_runs.RunAnswer(run=write(tx, changed, mask(ctx, tx, [conversation.id])))

    return await ctx.write(act)


@post(
    R + "/cancellation",
    id="cancelRun",
    tag="Runs",
    answer=wire_runs.RunAnswer,
    status=202,
    errors={409: "`run_settled`: it has its end.", 410: EXPIRED},
)
async def cancel_run(ctx: Ctx, workspace: str, run: str) -> wire_runs.RunAnswer:
    """Stop a run, and the subagents it started; its turn is canceled."""
    return await _changed(ctx, workspace, run, retrying.cancel)


@post(
    R + "/abandonment",
    id="abandonRun",
    tag="Runs",
    answer=wire_runs.RunAnswer,
    errors={409: "`run_settled`: it has its end; `run_live`: it works, so stop it.", 410: EXPIRED},
)
async def abandon_run(ctx: Ctx, workspace: str, run: str) -> wire_runs.RunAnswer:
    """Give up a run that waits for a person.

    It is canceled with its reason, and its turn has failed. It cannot be taken up again.
    """
    return await _changed(ctx, workspace, run, retrying.abandon)


@post(
    R + "/retry",
    id="retryRun",
    tag="Runs",
    answer=wire_runs.RunAnswer,
    status=202,
    errors=_RETRY_ERRORS,
)
async def retry_run(ctx: Ctx, workspace: str, run: str) -> wire_runs.RunAnswer:
    """Take up a failed run of the newest turn after its last good round.

    The round that failed is asked anew; what was called is not called again.
    """
    return await _changed(ctx, workspace, run, retrying.retry)


@post(
    R + "/tasks/{task_key}/retry",
    id="retryRunTask",
    tag="Runs",
    answer=wire_runs.RunAnswer,
    status=202,
    errors=_RETRY_ERRORS,
)
async def retry_task(ctx: Ctx, workspace: str, run: str, task_key: str) -> wire_runs.RunAnswer:
    """Take up a failed run at the round that failed, and at no other."""

    def change(tx: Tx, conversation: Conversation, found: Run) -> Run:
        return retrying.retry(tx, conversation, found, task_key)

    return await _changed(ctx, workspace, run, change)


routes: list[Route] = [cancel_run, abandon_run, retry_run, retry_task]
