"""The server that a command talks to: the one that was named, the one that serves the data folder,
or one of its own for as long as the command takes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from stenograph.accounts import credential
from stenograph.cli import options
from stenograph.errors import InvalidInputError, StenographError
from stenograph.storage import lock

#: What a key of this command may do, and not more.
_SCOPES = ("run", "sessions:read", "devices:write", "devices:use", "secrets:read")
#: Seconds that a request may take; one that waits for events says how long it waits itself.
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Reached:
    """A server, and a key for its organization."""

    url: str
    key: str
    organization: str

    @property
    def root(self) -> str:
        """Where the organization's v3 routes lie."""
        return f"{self.url}/v3/organizations/{self.organization}"

    @property
    def headers(self) -> dict[str, str]:
        """What says who asks."""
        return {"Authorization": f"Bearer {self.key}"}


@contextmanager
def reached(
    url: str | None, key: str | None, data: Path | None, database: str | None
) -> Iterator[Reached]:
    """Reach the server `url` with `key`, or without a `url` the record of the data folder.

    For the latter a key is made, and revoked afterwards.
    """
    if url is not None:
        if key is None:
            raise InvalidInputError(
                "A server by --url needs an API key: STENO_API_KEY", code="missing_key"
            )
        yield _named(url.rstrip("/"), key)
        return
    with options.opened(data, database) as place:
        wanted = tuple(scope for scope in _SCOPES if scope in place.caller.scopes)
        made, secret = place.database.write(
            lambda tx: credential.create(
                tx, place.caller, "api", wanted=wanted, name="steno run", expires_days=1
            )
        )
        try:
            with _serving(place.settings.data, place.location.url) as served:
                yield Reached(served, secret, place.settings.organization)
        finally:
            place.database.write(lambda tx: credential.revoke(tx, place.caller, made.public_id))


def _named(url: str, key: str) -> Reached:
    try:
        answer = httpx.get(
            f"{url}/v3/self", headers={"Authorization": f"Bearer {key}"}, timeout=TIMEOUT
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StenographError(f"{url} cannot be reached: {error}", code="unreachable") from None
    return Reached(url, key, said(answer)["org_id"])


@contextmanager
def _serving(data: Path, database: str) -> Iterator[str]:
    """Find the server of a data folder, or start one and stop it afterwards."""
    holder = lock.holder(data / lock.ENGINE)
    if holder is not None:
        yield holder
        return
    program = "from stenograph.app import main; main()"
    process = subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-c", program, "serve", "--port", "0", "--data", str(data)],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        # Ctrl-C is for the command, which tells the server when it is done.
        start_new_session=True,
        env={"STENO_LOG_LEVEL": "error"} | os.environ | {"STENO_DATABASE_URL": database},
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise StenographError("The server did not start", code="unreachable")
        yield str(json.loads(line)["url"])
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def said(answer: httpx.Response) -> Any:
    """Return what a server answered; raises `StenographError` with what it said against it."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    if answer.is_success and body is not None:
        return body
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        code, message = error.get("type") or error.get("code") or "error", error.get("message")
    else:
        message = body.get("message") if isinstance(body, dict) else None
        code = error or f"http_{answer.status_code}"
    raise StenographError(f"{message or code} ({code})" if message else str(code), code=str(code))
