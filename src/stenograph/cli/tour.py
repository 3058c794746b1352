"""`steno tour`: import logs, serve them, have an agent do something, and show the three readings of
both as a client gets them."""

import os
import shlex
import signal
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import typer

from stenograph.accounts import first_start
from stenograph.cli import options, run, tour_pages
from stenograph.cli.reached import Reached
from stenograph.cli.watched import View
from stenograph.errors import InvalidInputError, StenographError
from stenograph.settings import Settings
from stenograph.storage.database import Tx
from stenograph.trajectories.importers import discovery
from stenograph.trajectories.recording.record import record
from stenograph.trajectories.recording.session import Recorded

Serve: TypeAlias = Callable[[Settings, Callable[[str, bool], None]], None]

#: What the README's lines read; beside the database, for its owner only.
FILE = "tour.env"
#: What the agent is asked, of a scene that the package brings (`engine/models/scripts`).
PROMPT = "[dev:tour] Sum up notes.md in one line, in a file of its own."
_NOTES = "# Notes\n\nThe record is the only copy.\nNothing of it may get lost.\n"


def tour(
    context: typer.Context,
    samples: Annotated[Path, typer.Argument(help="A log, or a folder of logs.", exists=True)],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8080,
    once: Annotated[
        bool,
        typer.Option("--once", help="Stop after showing; a free port will do if it is taken."),
    ] = False,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
) -> None:
    """Import logs, serve them on this machine, and show what was recorded in three readings.

    Then an agent works in a scratch folder, and its session is shown in the same way. It goes on
    serving until SIGTERM or SIGINT.
    """
    settings = options.read_settings(data, database, host="127.0.0.1", port=port)
    recorded = _import(data, database, samples)
    visit = Visit(settings, recorded, once)
    serve: Serve = context.obj
    try:
        serve(settings, visit.start)
    except StenographError as error:
        if not once or error.code != "address_unavailable":
            raise
        free = options.read_settings(data, database, host="127.0.0.1", port=0)
        serve(free, visit.start)
    if visit.failure is not None:
        raise StenographError(visit.failure)


def _import(data: Path | None, database: str | None, samples: Path) -> list[Recorded]:
    """Record every log there; those that are known change nothing."""
    tour_pages.opening(samples)
    drafts = [
        draft
        for candidate in discovery.find([samples])
        if candidate.format is not None
        for draft in discovery.read_source(candidate)
    ]
    with options.opened(data, database) as place:

        def keep(tx: Tx) -> list[Recorded]:
            return [found for draft in drafts for found in record(tx, place.caller, draft)]

        recorded = place.database.write(keep)
    if not recorded:
        raise InvalidInputError(f"There is no log in {samples}")
    tour_pages.imported(recorded)
    return recorded


@dataclass
class Visit:
    """A client of the server that has just started, on a thread of its own."""

    settings: Settings
    recorded: list[Recorded]
    once: bool
    failure: str | None = None

    def start(self, url: str, _: bool) -> None:
        threading.Thread(target=self._visit, args=[url], name="tour", daemon=True).start()

    def _visit(self, url: str) -> None:
        try:
            _show(url, self.settings, _telling(self.recorded), keeps_serving=not self.once)
        except Exception as error:  # it is shown where the command ends
            self.failure = f"The tour could not be shown: {error}"
        finally:  # Rich leaves by SystemExit when whoever read the output has gone
            if self.once or self.failure is not None:
                os.kill(os.getpid(), signal.SIGTERM)


def _telling(recorded: list[Recorded]) -> Recorded:
    """Choose the session that has most to show."""
    roots = [found for found in recorded if found.parent_session_id is None]
    return max(roots or recorded, key=lambda found: found.steps)


def _show(url: str, settings: Settings, session: Recorded, *, keeps_serving: bool) -> None:
    keys = msgspec.json.decode((settings.data / first_start.FILE).read_bytes())
    variables = _read(url, keys, session.session_id, session.workspace_id)
    ended = _live(url, keys)
    _read(url, keys, ended["session_id"], _workspace(url, keys, ended["session_id"]))
    if not keeps_serving:
        # What the README's lines read belongs to a server that goes on.
        tour_pages.ended()
        return
    lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
    first_start.write_privately(settings.data / FILE, lines.encode())
    tour_pages.serving(url, settings.data / FILE)


def _live(url: str, keys: dict[str, str]) -> Mapping[str, Any]:
    """Have the model that comes with the package work in a scratch folder."""
    tour_pages.live(PROMPT)
    with tempfile.TemporaryDirectory(prefix="steno-tour-") as folder:
        root = Path(folder)
        (root / "notes.md").write_text(_NOTES)
        server = Reached(url, keys["api"], keys["organization"])
        return run.live(server, root, View(), PROMPT, "dev/thinker")


def _workspace(url: str, keys: dict[str, str], session_id: str) -> str:
    """Return the workspace in which a session's conversation lies."""
    root, member = f"{url}/agent_api/v1/workspaces", keys["member"]
    for workspace in _get(root, member)["workspaces"]:
        listed = _get(f"{root}/{workspace['public_id']}/conversations?order=desc", member)
        if session_id in (found["public_id"] for found in listed["conversations"]):
            return str(workspace["public_id"])
    raise InvalidInputError("The session is in no workspace")


def _read(url: str, keys: dict[str, str], session_id: str, workspace_id: str) -> dict[str, str]:
    """Show a session's three readings; returns what the README's lines read."""
    v3 = f"{url}/v3/organizations/{keys['organization']}/sessions/{session_id}"
    agent = f"{url}/agent_api/v1/workspaces/{workspace_id}/conversations/{session_id}"
    api, member = keys["api"], keys["member"]
    messages = _get(f"{v3}/conversation?first=20", api)
    turns = _get(f"{agent}/turns", member)
    turn, variant, reasoning = _thoughtful(agent, member, turns["turns"])
    trajectory = _get(f"{v3}/trajectory", api)
    thoughts = f"{agent}/turns/{turn}/variants/{variant}/reasoning"
    tour_pages.messages(_curl(f"{v3}/conversation?first=20", api), messages)
    tour_pages.reasoning(_curl(thoughts, member), reasoning)
    tour_pages.trajectory(_curl(f"{v3}/trajectory?format=atif", api), trajectory)
    more = {
        "the turns": _curl(f"{agent}/turns", member),
        "what happened": _curl(f"{v3}/events?after_seq=-1&limit=20", api),
        "all sessions": _curl(v3.rpartition("/")[0], api),
    }
    tour_pages.more(more)
    return {
        "STENO": url,
        "API_KEY": api,
        "MEMBER_KEY": member,
        "SESSION": session_id,
        "WORKSPACE": workspace_id,
        "CONVERSATION": session_id,
        "TURN": turn,
        "VARIANT": variant,
    }


def _thoughtful(agent: str, key: str, turns: list[dict[str, Any]]) -> tuple[str, str, Any]:
    """Return the turn and candidate with the most reasoning on its page, and that page."""
    pages = []
    for turn in turns:
        variant = turn["active_variant"]["public_id"]
        page = _get(f"{agent}/turns/{turn['public_id']}/variants/{variant}/reasoning", key)
        available = sum(item["available"] for item in page["items"])
        pages.append((available, turn["public_id"], variant, page))
    if not pages:
        raise InvalidInputError("The session has no turn")
    _, turn_id, variant_id, page = max(pages, key=lambda found: found[0])
    return turn_id, variant_id, page


def _get(url: str, key: str) -> Any:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})  # noqa: S310
    deadline = time.monotonic() + 10
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return msgspec.json.decode(answer.read())
        except ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _curl(url: str, key: str) -> str:
    return f"curl -s -H 'Authorization: Bearer {key}' '{url}'"
