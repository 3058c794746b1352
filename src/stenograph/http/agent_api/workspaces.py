"""Workspaces and who belongs to them."""

from collections.abc import Callable
from typing import Any

from stenograph import clock
from stenograph.accounts.access import Caller
from stenograph.conversations import access
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Workspace
from stenograph.conversations.workspace import Person
from stenograph.http import idempotency
from stenograph.http.agent_api import wire
from stenograph.http.agent_api.common import (
    AFTER,
    ORDER,
    PAGE,
    key_after,
    moment,
    next_page,
)
from stenograph.http.context import Ctx
from stenograph.http.parameters import Integer
from stenograph.http.route import Answer, Route, delete, get, patch, post
from stenograph.storage.database import Tx

_KEY = ("id",)
VERSION = Integer(name="lock_version", required=True, about="The version that you mean.")
_OWNERS = {
    403: "`not_workspace_owner`.",
    409: "`stale_object`: it has changed since you read it.",
}


def _line(found: Workspace) -> dict[str, Any]:
    return {
        "public_id": found.public_id,
        "name": found.name,
        "access_mode": found.access_mode,
        "state": found.state,
        "dedicated": False,
        "lock_version": found.lock_version,
        "archived_at": moment(found.archived_at),
        "created_at": clock.iso_seconds(found.created_at),
        "updated_at": clock.iso_seconds(found.updated_at),
    }


def _document(tx: Tx, found: Workspace) -> wire.WorkspaceAnswer:
    about = workspaces.details(tx, found)
    owner, creator = about.owner, about.creator
    return wire.WorkspaceAnswer(
        workspace=wire.Workspace(
            **_line(found),
            metadata=workspaces.metadata(found),
            tool_provider_overrides={},
            owner=wire.Owner(public_id=owner.public_id, display_name=owner.display_name),
            creator=wire.Creator(
                public_id=creator.public_id,
                display_name=creator.display_name,
                kind=creator.kind,
            ),
        )
    )


@get(
    "/workspaces",
    id="listWorkspaces",
    tag="Workspaces",
    query=[PAGE, AFTER, ORDER],
    answer=wire.Workspaces,
)
async def list_workspaces(ctx: Ctx) -> wire.Workspaces:
    """List the workspaces you belong to, in order of creation."""
    limit = PAGE.read(ctx.query)
    order = ORDER.read(ctx.query)
    after = key_after(ctx, order, _KEY)

    def look(tx: Tx) -> list[Workspace]:
        return workspaces.page(
            tx,
            ctx.caller,
            after=None if after is None else after[0],
            limit=limit + 1,
            descending=order == "desc",
        )

    found = await ctx.read(look)
    return wire.Workspaces(
        workspaces=[wire.WorkspaceLine(**_line(one)) for one in found[:limit]],
        pagination=next_page(order, _KEY, [found[limit - 1].id] if len(found) > limit else None),
    )


@post(
    "/workspaces",
    id="createWorkspace",
    tag="Workspaces",
    body=wire.WorkspaceBody,
    idempotency="optional",
    answer=wire.WorkspaceAnswer,
    status=201,
    errors={422: "`validation_failed` or `principal_not_eligible`."},
)
async def create_workspace(ctx: Ctx) -> Answer:
    """Make a workspace. You own it."""
    sent = idempotency.key(ctx)
    new = ctx.body(wire.WorkspaceBody).workspace

    def act(tx: Tx) -> Answer:
        def make() -> tuple[str, wire.WorkspaceAnswer]:
            made = workspaces.create(
                tx,
                ctx.caller,
                new.name,
                access_mode=new.access_mode,
                metadata=new.metadata,
                members=new.members,
            )
            return made.public_id, _document(tx, made)

        def again(public_id: str) -> wire.WorkspaceAnswer:
            return _document(tx, access.find_workspace(tx, ctx.caller, public_id))

        return idempotency.once(tx, sent, make, again)

    return await ctx.write(act)


@get(
    "/workspaces/{workspace}",
    id="getWorkspace",
    tag="Workspaces",
    answer=wire.WorkspaceAnswer,
)
async def get_workspace(ctx: Ctx, workspace: str) -> wire.WorkspaceAnswer:
    """Read a workspace."""
    return await ctx.read(
        lambda tx: _document(tx, access.find_workspace(tx, ctx.caller, workspace))
    )


@get(
    "/workspaces/{workspace}/principals",
    id="listWorkspacePrincipals",
    tag="Workspaces",
    answer=wire.Principals,
)
async def list_principals(ctx: Ctx, workspace: str) -> wire.Principals:
    """List who belongs to a workspace."""

    def look(tx: Tx) -> list[Person]:
        return workspaces.principals(tx, access.find_workspace(tx, ctx.caller, workspace))

    return wire.Principals(principals=[_person(one) for one in await ctx.read(look)])


def _person(found: Person) -> wire.Person:
    return wire.Person(
        public_id=found.public_id,
        handle=found.handle,
        kind=found.kind,
        display_name=found.display_name,
        agent_identifier=None,
        steward_public_id=None,
    )


@patch(
    "/workspaces/{workspace}",
    id="updateWorkspace",
    tag="Workspaces",
    body=wire.WorkspaceChangeBody,
    answer=wire.WorkspaceAnswer,
    errors=_OWNERS
    | {
        409: "`stale_object` or `workspace_not_active`.",
        422: "`validation_failed` or `principal_not_eligible`.",
    },
)
async def update_workspace(ctx: Ctx, workspace: str) -> wire.WorkspaceAnswer:
    """Change a workspace of yours; what you leave out stays as it is."""

    def act(tx: Tx) -> wire.WorkspaceAnswer:
        found = access.find_workspace(tx, ctx.caller, workspace)
        new = ctx.body(wire.WorkspaceChangeBody).workspace
        changed = workspaces.update(
            tx,
            ctx.caller,
            found,
            new.lock_version,
            name=new.name,
            access_mode=new.access_mode,
            metadata=new.metadata,
            members=new.members,
        )
        return _document(tx, changed)

    return await ctx.write(act)


@post(
    "/workspaces/{workspace}/archive",
    id="archiveWorkspace",
    tag="Workspaces",
    body=wire.WorkspaceVersionBody,
    answer=wire.WorkspaceAnswer,
    errors=_OWNERS,
)
async def archive_workspace(ctx: Ctx, workspace: str) -> wire.WorkspaceAnswer:
    """Archive a workspace of yours: it is read as before and takes nothing new."""
    return await _moved(ctx, workspace, workspaces.archive)


@post(
    "/workspaces/{workspace}/restore",
    id="restoreWorkspace",
    tag="Workspaces",
    body=wire.WorkspaceVersionBody,
    answer=wire.WorkspaceAnswer,
    errors=_OWNERS,
)
async def restore_workspace(ctx: Ctx, workspace: str) -> wire.WorkspaceAnswer:
    """Open an archived workspace of yours again."""
    return await _moved(ctx, workspace, workspaces.restore)


async def _moved(
    ctx: Ctx, workspace: str, move: Callable[[Tx, Caller, Workspace, int], Workspace]
) -> wire.WorkspaceAnswer:
    def act(tx: Tx) -> wire.WorkspaceAnswer:
        found = access.find_workspace(tx, ctx.caller, workspace)
        version = ctx.body(wire.WorkspaceVersionBody).workspace.lock_version
        return _document(tx, move(tx, ctx.caller, found, version))

    return await ctx.write(act)


@delete(
    "/workspaces/{workspace}",
    id="deleteWorkspace",
    tag="Workspaces",
    query=[VERSION],
    errors={
        403: "`not_workspace_owner`, or it holds a conversation that you may not change.",
        409: "`stale_object`, or `conversation_busy` while something in it works.",
    },
)
async def delete_workspace(ctx: Ctx, workspace: str) -> None:
    """Delete a workspace of yours with all its conversations, as `deleteConversation` does."""

    def act(tx: Tx) -> None:
        found = access.find_workspace(tx, ctx.caller, workspace)
        workspaces.delete(tx, ctx.caller, found, VERSION.read(ctx.query))

    await ctx.write(act)


routes: list[Route] = [
    list_workspaces,
    create_workspace,
    get_workspace,
    update_workspace,
    archive_workspace,
    restore_workspace,
    delete_workspace,
    list_principals,
]
