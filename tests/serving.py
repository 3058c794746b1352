"""The whole HTTP application in the test's own process."""

import asyncio
from typing import Any

import httpx

from people import Org
from stenograph.accounts import access, credential
from stenograph.http import server
from stenograph.settings import Settings
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer


class Api:
    """The whole HTTP application in this process, without a socket.

    `key` is a name of `Org.keys`, a secret, or "" for none; left out, it is the owner's key of
    the family that the path belongs to. Bodies: `json=…` or `content=…`, as httpx takes them.
    """

    #: Where the organization's v3 routes lie.
    v3 = "/v3/organizations/default"
    #: Where the Agent API's routes lie.
    agent = "/agent_api/v1"

    def __init__(self, database: Database, org: Org, settings: Settings, sealer: Sealer) -> None:
        self.database, self.org, self.settings, self.sealer = database, org, settings, sealer
        self.app = server.create(database, settings, sealer)
        self.runner = asyncio.Runner()
        self.runner.get_loop()
        transport = httpx.ASGITransport(app=self.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://steno.test")

    def close(self) -> None:
        self.runner.run(self.client.aclose())
        self.runner.close()

    async def send(
        self, method: str, path: str, *, key: str | None = None, **options: Any
    ) -> httpx.Response:
        """Send one request from within the loop; for several at once see `together`."""
        if key is None:
            key = "api" if path.startswith("/v3") else "member"
        headers = dict(options.pop("headers", {}))
        if key:
            headers.setdefault("Authorization", f"Bearer {self.org.keys.get(key, key)}")
        return await self.client.request(method, path, headers=headers, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.runner.run(self.send(method, path, **options))

    def together(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Send (method, path, options) all at once."""

        async def all_of_them() -> list[httpx.Response]:
            return await asyncio.gather(
                *(self.send(method, path, **options) for method, path, options in requests)
            )

        return self.runner.run(all_of_them())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)

    def key(self, plane: str = "api", **options: Any) -> str:
        """Make a key as the owner would (`credential.create`) and return its secret."""
        with self.database.read() as tx:
            owner = access.local(tx)
        return self.database.write(lambda tx: credential.create(tx, owner, plane, **options))[1]
