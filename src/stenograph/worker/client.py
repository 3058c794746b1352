"""The server as a worker sees it: each answer a value, each refusal an error of its own."""

import math
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from stenograph.errors import ConflictError, InvalidInputError, StenographError, UnauthorizedError
from stenograph.worker.wire import Claimed, Enrolled, Lease, Leased, Reported, Settlement

T = TypeVar("T")

EXECUTOR = "/agent_api/v1/executor"
#: Seconds that a server may take to answer, besides those that it was asked to wait.
_ANSWERING = 20.0
#: Most seconds of a `Retry-After` that are respected.
_LONGEST_RETRY = 300.0


class AwayError(StenographError):
    """No answer, or none that decides anything: the same request may be sent again.

    `retry_after`: seconds that the server asked for.
    """

    code = "server_away"

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StaleError(ConflictError):
    """The claim is not this worker's any more."""

    code = "stale_claim"


class RefusedError(StenographError):
    """The server will not have it, however often it is sent."""

    code = "refused"


class TooLargeError(RefusedError):
    """The server will not have it in this size."""

    code = "content_too_large"


@dataclass(frozen=True, slots=True)
class Server:
    """A server, before anybody is enrolled there."""

    url: str
    http: httpx.AsyncClient = field(repr=False)

    async def ask(
        self, path: str, body: Any, answer: type[T], secret: str | None = None, wait: float = 0.0
    ) -> T:
        """Post a body (None: get) and return the answer.

        Raises `AwayError`, `UnauthorizedError`, `StaleError`, `TooLargeError`, and `RefusedError`
        with the server's own code and sentence.
        """
        headers = {"Content-Type": "application/json"}
        if secret is not None:
            headers["Authorization"] = f"Bearer {secret}"
        content = None if body is None else msgspec.json.encode(body)
        timeout = httpx.Timeout(_ANSWERING, read=_ANSWERING + wait)
        method = "GET" if body is None else "POST"
        try:
            response = await self.http.request(
                method, self.url + path, content=content, headers=headers, timeout=timeout
            )
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            reason = str(error) or type(error).__name__
            raise AwayError(f"{self.url} cannot be reached: {reason}") from None
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise AwayError(f"{self.url} did not answer: {reason}") from None
        if not response.is_success:
            raise _refusal(self.url, response)
        try:
            return msgspec.json.decode(response.content, type=answer)
        except msgspec.DecodeError as error:
            raise AwayError(f"{self.url} answers something else: {error}") from None

    async def enrol(self, body: dict[str, Any]) -> Enrolled:
        """Become a device by a ticket. The same may be sent again until the device has worked."""
        return await self.ask(f"{EXECUTOR}/enrollments", {"enrollment": body}, Enrolled)


@dataclass(frozen=True, slots=True)
class Client:
    """A server to a device of it."""

    server: Server
    secret: str = field(repr=False)

    async def claim(self, wait: float, sessions: set[str], free: int) -> Claimed:
        """Ask for work, for at most `wait` seconds: of these sessions, or of `free` others."""
        body = {"wait_ms": math.ceil(wait * 1000), "sessions": sorted(sessions), "free": free}
        return await self._post("claims", {"claim": body}, Claimed, wait)

    async def extend(self, claim_id: str) -> Lease:
        """Keep a claim."""
        return (await self._post(f"claims/{claim_id}/lease", {}, Leased)).lease

    async def report(self, claim_id: str, text: str, characters: int) -> bool:
        """Tell the end of what a claim's call has written; returns whether anybody watches."""
        body = {"progress": {"text": text, "characters": characters}}
        return (await self._post(f"claims/{claim_id}/progress", body, Reported)).progress.watched

    async def settle(self, claim_id: str, settlement: Settlement) -> None:
        """Give back what came of a claim; the same may be given again."""
        body = {"settlement": settlement}
        await self._post(f"claims/{claim_id}/settlement", body, msgspec.Raw)

    async def _post(self, path: str, body: Any, answer: type[T], wait: float = 0.0) -> T:
        return await self.server.ask(f"{EXECUTOR}/{path}", body, answer, self.secret, wait)


def address(url: str) -> str:
    """Return a server's address without what it may end in; raises `InvalidInputError`."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or "@" in url or "?" in url or "#" in url:
        raise InvalidInputError(
            "The server's address has to be like http://127.0.0.1:8642", code="invalid_url"
        )
    return url.rstrip("/")


def _refusal(url: str, response: httpx.Response) -> StenographError:
    status = response.status_code
    if status >= 500 or status in (408, 425, 429):
        return AwayError(f"{url} answers {status}", _retry_after(response))
    code, message = _said(response)
    if status == 401:
        return UnauthorizedError(message)
    if code == StaleError.code:
        return StaleError(message)
    kind = TooLargeError if status == 413 else RefusedError
    return kind(message, code=code)


def _retry_after(response: httpx.Response) -> float:
    text = response.headers.get("Retry-After", "")
    return min(float(text), _LONGEST_RETRY) if text.isdecimal() else 0.0


def _said(response: httpx.Response) -> tuple[str, str]:
    """Read an error in either family's shape; returns its code and its sentence."""
    said: Any
    try:
        said = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        said = None
    said = said if isinstance(said, dict) else {}
    error = said.get("error")
    if isinstance(error, dict):
        code = error.get("code") or error.get("type")
        message = error.get("message")
    else:
        code, message = error, said.get("message")
        if scope := said.get("required_scope"):
            message = f"the key lacks the scope {scope}"
    code = str(code or response.status_code)
    return code, f"The server refuses it ({code}): {message or response.reason_phrase}"
