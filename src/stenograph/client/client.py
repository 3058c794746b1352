"""Where a caller begins: `Client`, and `AsyncClient` for event loops."""

from types import TracebackType

import httpx

from stenograph.client.sending import Async, Retries, Sync
from stenograph.client.workspaces import WorkspaceCollection, WorkspaceResource

#: Three times as long as a server is silent on a stream that is open.
_SILENCE = 45.0


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "User-Agent": "stenograph-client"}


def _limits(timeout: float) -> httpx.Timeout:
    return httpx.Timeout(timeout, read=max(timeout, _SILENCE))


class Client:
    """The Agent API of one server, for a member: `key` is a secret of the member plane.

    Every call blocks, for at most `timeout` seconds without a sign of the server. It may be used by
    several threads. `transport` takes the place of the network (httpx). Close it, or use it in a
    `with` block.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout: float = 30.0,
        retries: Retries = Retries(),  # noqa: B008
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        http = httpx.Client(
            base_url=base_url, headers=_headers(key), timeout=timeout, transport=transport
        )
        self._via = Sync(http, retries, _limits(timeout))

    @property
    def workspaces(self) -> WorkspaceCollection[Sync]:
        """The workspaces you belong to."""
        return WorkspaceCollection(self._via, "workspaces")

    def workspace(self, workspace_id: str) -> WorkspaceResource[Sync]:
        """Return one of them, which is not asked for until something of it is."""
        return WorkspaceResource(self._via, "workspaces", workspace_id)

    def close(self) -> None:
        """Close its connections."""
        self._via.http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient:
    """As `Client`, on an event loop: what returns there is awaited here, and what is iterated there
    is iterated with `async for`."""

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout: float = 30.0,
        retries: Retries = Retries(),  # noqa: B008
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        http = httpx.AsyncClient(
            base_url=base_url, headers=_headers(key), timeout=timeout, transport=transport
        )
        self._via = Async(http, retries, _limits(timeout))

    @property
    def workspaces(self) -> WorkspaceCollection[Async]:
        """The workspaces you belong to."""
        return WorkspaceCollection(self._via, "workspaces")

    def workspace(self, workspace_id: str) -> WorkspaceResource[Async]:
        """Return one of them, which is not asked for until something of it is."""
        return WorkspaceResource(self._via, "workspaces", workspace_id)

    async def aclose(self) -> None:
        """Close its connections."""
        await self._via.http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
