"""The workspaces that somebody belongs to, and each of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stenograph.client.calls import Answer, Call, given, new_key, nothing, one, page, several
from stenograph.client.conversation import ConversationResource
from stenograph.client.conversations import ConversationCollection
from stenograph.client.records import Page, Person, Workspace, WorkspaceLine, WorkspaceReceipt
from stenograph.client.runs import RunCollection
from stenograph.client.steps import Script, pages
from stenograph.client.surface import Resource, Via, iteration, operation

_document = one("workspace", Workspace)


class WorkspaceCollection(Resource[Via]):
    """`client.workspaces`. `order` is `asc` or `desc`, by creation.

    A change names the `lock_version` that it is meant for; another one is a `Conflict`.
    """

    @operation
    def list(
        self, *, after: str | None = None, limit: int | None = None, order: str | None = None
    ) -> Call[Page[WorkspaceLine]]:
        """Read the workspaces you belong to."""
        query = {"after": after, "limit": limit, "order": order}
        return Call("GET", self._path(), page("workspaces", WorkspaceLine), query=query)

    @iteration
    def each(self, *, order: str | None = None) -> Script[WorkspaceLine]:
        """Give all of them."""
        return pages(
            lambda after: WorkspaceCollection.list.call(self, after=after, limit=100, order=order)
        )

    @operation
    def create(
        self,
        name: str,
        *,
        access_mode: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        members: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[WorkspaceReceipt]:
        """Make a workspace. `access_mode`: `private`, for you and `members` (ids or handles), or
        `account_wide`."""
        key = new_key(idempotency_key)
        new = given(name=name, access_mode=access_mode, metadata=metadata, members=members)
        return Call(
            "POST",
            self._path(),
            _receipt(key),
            status=201,
            body={"workspace": new},
            idempotency_key=key,
        )

    @operation
    def fetch(self, workspace_id: str) -> Call[Workspace]:
        """Read one."""
        return Call("GET", self._path(workspace_id), _document)

    @operation
    def update(
        self,
        workspace_id: str,
        lock_version: int,
        *,
        name: str | None = None,
        access_mode: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        members: Sequence[str] | None = None,
    ) -> Call[Workspace]:
        """Change one of yours; what is left out stays. `members` are all there are to be."""
        new = given(
            lock_version=lock_version, name=name, access_mode=access_mode, metadata=metadata,
            members=members,
        )  # fmt: skip
        return Call("PATCH", self._path(workspace_id), _document, body={"workspace": new})

    @operation
    def archive(self, workspace_id: str, lock_version: int) -> Call[Workspace]:
        """Archive one of yours: it is read as before and takes nothing new."""
        body = {"workspace": {"lock_version": lock_version}}
        return Call("POST", self._path(workspace_id, "archive"), _document, body=body)

    @operation
    def restore(self, workspace_id: str, lock_version: int) -> Call[Workspace]:
        """Open an archived one of yours again."""
        body = {"workspace": {"lock_version": lock_version}}
        return Call("POST", self._path(workspace_id, "restore"), _document, body=body)

    @operation
    def delete(self, workspace_id: str, lock_version: int) -> Call[None]:
        """Delete one of yours with all its conversations."""
        query = {"lock_version": lock_version}
        return Call("DELETE", self._path(workspace_id), nothing, status=204, query=query)

    @operation
    def principals(self, workspace_id: str) -> Call[tuple[Person, ...]]:
        """Read who belongs to one."""
        return Call("GET", self._path(workspace_id, "principals"), several("principals", Person))


class WorkspaceResource(Resource[Via]):
    """`client.workspace(id)`."""

    @property
    def conversations(self) -> ConversationCollection[Via]:
        """Its conversations."""
        return ConversationCollection(self._via, *self._at, "conversations")

    @property
    def runs(self) -> RunCollection[Via]:
        """The runs in its conversations."""
        return RunCollection(self._via, *self._at, "runs")

    def conversation(self, conversation_id: str) -> ConversationResource[Via]:
        """Return one of its conversations, which is not asked for until something of it is."""
        return self.conversations.conversation(conversation_id)


def _receipt(key: str) -> Callable[[Answer], WorkspaceReceipt]:
    return lambda answer: WorkspaceReceipt(
        workspace=_document(answer), replayed=answer.replayed, idempotency_key=key
    )
