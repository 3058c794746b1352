"""Who may pass: the credential, the rate, the organization, the scope, in each family's order."""

import asyncio
from typing import Any

from litestar import Request

from stenograph.accounts import access, organization
from stenograph.accounts.access import Caller
from stenograph.errors import ForbiddenError, UnauthorizedError
from stenograph.http.rate_limits import WINDOW, Windows
from stenograph.http.route import ANY_KEY, Route
from stenograph.settings import Settings
from stenograph.storage.database import Database


class Gate:
    """Admits requests of both families; holds the counters of this process."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self.windows = Windows()

    async def agent(self, request: Request[Any, Any, Any], route: Route) -> Caller:
        """Address backstop 429, credential, caller's budget 429, then 401 (agent-api.md 1.4).

        A key of another plane, revoked, expired or unknown: all are the same 401. The plane `open`
        asks for none, and has its budget by address; `platform` asks for an API key.
        """
        budget = route.requests or self._settings.agent_requests_per_minute
        address = request.scope["client"][0] if request.scope["client"] else ""
        most = budget * self._settings.agent_address_factor
        self.windows.charge((route.tag, address), most, "Too many requests", WINDOW)
        if route.plane == "open":
            self.windows.charge((route.tag, "open", address), budget, "Too many requests", WINDOW)
            return access.NOBODY
        try:
            caller = await self._resolve(request)
            holder = caller.credential_public_id
        except UnauthorizedError:
            caller, holder = None, address
        self.windows.charge((route.tag, "caller", holder), budget, "Too many requests", WINDOW)
        wanted = "api" if route.plane == "platform" else route.plane
        if caller is None or caller.plane != wanted:
            raise UnauthorizedError("Unauthorized")
        return caller

    async def v3(self, request: Request[Any, Any, Any], route: Route) -> Caller:
        """Key 401, rate 429, organization 404, scope 403 (reason-api.md 1)."""
        caller = await self._resolve(request)
        if caller.plane != "api":
            raise UnauthorizedError("A key of the Agent API", code="invalid_api_key")
        self.windows.charge(
            ("v3", caller.credential_public_id),
            self._settings.v3_requests_per_minute,
            "This API key exceeded its request-rate limit",
        )
        named = request.scope["path_params"].get("orgId")
        if named is not None:
            organization.require(caller, named)
        if route.scope != ANY_KEY and route.scope not in caller.scopes:
            raise ForbiddenError(
                f"The key lacks {route.scope}", code="missing_scope", required_scope=route.scope
            )
        return caller

    async def _resolve(self, request: Request[Any, Any, Any]) -> Caller:
        secret = bearer(request.scope["headers"])
        if secret is None:
            raise UnauthorizedError("No bearer key", code="missing_bearer")
        if self._database.reads_wait:
            return await asyncio.to_thread(self._look, secret)
        return self._look(secret)

    def _look(self, secret: str) -> Caller:
        with self._database.once() as tx:
            return access.resolve(tx, secret)


def bearer(headers: Any) -> str | None:
    """Return the secret of `Authorization: Bearer <secret>`; the word `Token` does as well."""
    value = next((value for name, value in headers if name == b"authorization"), b"")
    scheme, _, secret = value.partition(b" ")
    if scheme.lower() not in (b"bearer", b"token"):
        return None
    return secret.strip().decode("latin-1") or None
