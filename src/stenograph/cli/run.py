"""`steno run` and `steno chat`: an agent at work in a folder of this machine, watched live."""

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import httpx
import msgspec
import typer

from stenograph.cli import following, options
from stenograph.cli.following import Session
from stenograph.cli.reached import Reached, reached
from stenograph.cli.watched import View
from stenograph.engine.tools.workplace import Permissions
from stenograph.errors import InvalidInputError, StenographError
from stenograph.worker import run as workers
from stenograph.worker.config import Config
from stenograph.worker.wire import Device

#: The exit status by how a session ended; `STOPPED` for one that Ctrl-C stopped.
_BY_OUTCOME = {"success": 0, "failure": 1, "action_required": 2}
_ERROR, STOPPED = 3, 130

Prompt = Annotated[str | None, typer.Argument(help="What to do; `-` reads it from stdin.")]
Model = Annotated[
    str | None,
    typer.Option(
        help="Which model, provider/model [the server's STENO_MODEL].", show_default=False
    ),
]
Effort = Annotated[str | None, typer.Option(help="How much it is to think.", show_default=False)]
Root = Annotated[
    Path | None,
    typer.Option(help="The folder that it works in, with tools; none: without tools."),
]
Allow = Annotated[str, typer.Option(help="What of read,write,execute it may do there.")]
Secret = Annotated[
    list[str] | None,
    typer.Option(help="A secret by name, set in its commands' environment; may come again."),
]
Ask = Annotated[bool, typer.Option("--ask", help="Ask before each call of a tool.")]
Steps = Annotated[int | None, typer.Option(min=0, help="At most so many calls of the model.")]
Cost = Annotated[float | None, typer.Option(min=0, help="At most so many US dollars.")]
Minutes = Annotated[float | None, typer.Option(min=0, help="At most so many minutes.")]
Url = Annotated[
    str | None,
    typer.Option(envvar="STENO_URL", help="A server to run it on; none: this data folder."),
]
Key = Annotated[
    str | None,
    typer.Option(envvar="STENO_API_KEY", help="An API key for it; better in the environment."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show the answer only.")]


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a session is begun with; `body` holds all but prompt and target."""

    body: Mapping[str, Any]
    root: Path | None
    allow: Permissions
    ask: bool


def run(
    prompt: Prompt = None,
    model: Model = None,
    reasoning_effort: Effort = None,
    root: Root = None,
    allow: Allow = "read,write,execute",
    secret: Secret = None,
    ask: Ask = False,
    max_steps: Steps = None,
    max_cost: Cost = None,
    max_minutes: Minutes = None,
    url: Url = None,
    key: Key = None,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
    quiet: Quiet = False,
) -> None:
    """Have an agent do something, and watch it.

    Everything it says, thinks and does is recorded: `steno export` gives it back. The exit status
    is 0 for success, 1 for failure, 2 if you are needed, 3 for an error, 130 after Ctrl-C.
    """
    text = sys.stdin.read() if prompt == "-" else prompt
    if not text or not text.strip():
        raise InvalidInputError('Say what to do: steno run "…"', code="prompt_required")
    wish = _wish(model, reasoning_effort, secret, (max_steps, max_cost, max_minutes),
                 root, allow, ask)  # fmt: skip
    view = View(raw=json, quiet=quiet)
    with reached(url, key, data, database) as server:
        status = asyncio.run(_run(server, wish, view, text))
    raise typer.Exit(status)


def chat(
    prompt: Prompt = None,
    model: Model = None,
    reasoning_effort: Effort = None,
    root: Root = None,
    allow: Allow = "read,write,execute",
    secret: Secret = None,
    ask: Ask = False,
    max_steps: Steps = None,
    max_cost: Cost = None,
    max_minutes: Minutes = None,
    url: Url = None,
    key: Key = None,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
) -> None:
    """Talk to an agent: as `steno run`, and it goes on with what you type.

    Ctrl-C stops what it does; an empty line, or Ctrl-D, ends the talk.
    """
    wish = _wish(model, reasoning_effort, secret, (max_steps, max_cost, max_minutes),
                 root, allow, ask)  # fmt: skip
    with reached(url, key, data, database) as server:
        status = asyncio.run(_chat(server, wish, View(), prompt))
    raise typer.Exit(status)


def _wish(
    model: str | None,
    effort: str | None,
    secrets: list[str] | None,
    limits: tuple[int | None, float | None, float | None],
    root: Path | None,
    allow: str,
    ask: bool,
) -> _Wish:
    steps, cost, minutes = limits
    budget = {
        "steps_max": steps,
        "cost_max_usd": cost,
        "wall_clock_max_ms": None if minutes is None else int(minutes * 60_000),
    }
    body = {
        "model": model,
        "reasoning_effort": effort,
        "secrets": secrets,
        "execution_budget": {name: most for name, most in budget.items() if most is not None},
        "session_policy": {"approval_mode": "ask"} if ask else None,
        "tags": ["steno run"],
    }
    words = {word.strip() for word in allow.split(",")}
    unknown = words - {"read", "write", "execute"}
    if unknown:
        raise InvalidInputError(
            f"--allow takes read, write and execute, not {min(unknown)}", code="invalid_option"
        )
    permissions = Permissions("read" in words, "write" in words, "execute" in words)
    chosen = {name: value for name, value in body.items() if value}
    return _Wish(chosen, root, permissions, ask)


def live(server: Reached, root: Path, view: View, prompt: str, model: str) -> Mapping[str, Any]:
    """Run a session of `prompt` in a folder, show it, and return how it ended; on any thread."""
    wish = _Wish({"model": model}, root, Permissions(True, True, True), ask=False)

    async def watched() -> Mapping[str, Any]:
        async with following.client(server) as http, _working(server, http, wish) as target:
            body = {**wish.body, **target, "prompt": prompt}
            session = await following.begin(server, http, body)
            ended, _ = await _watch(session, view, wish, interruptible=False)
            return ended

    ended = asyncio.run(watched())
    view.end(ended)
    return ended


async def _run(server: Reached, wish: _Wish, view: View, prompt: str) -> int:
    async with following.client(server) as http, _working(server, http, wish) as target:
        session = await following.begin(server, http, {**wish.body, **target, "prompt": prompt})
        ended, stopped = await _watch(session, view, wish)
        view.end(ended)
    return STOPPED if stopped else _status(ended)


async def _chat(server: Reached, wish: _Wish, view: View, prompt: str | None) -> int:
    status = 0
    async with following.client(server) as http, _working(server, http, wish) as target:
        session: Session | None = None
        while text := prompt or await _typed():
            prompt = None
            if session is None:
                body = {**wish.body, **target, "prompt": text}
                session = await following.begin(server, http, body)
            else:
                await session.say(text)
            ended, stopped = await _watch(session, view, wish)
            view.end(ended)
            status = STOPPED if stopped else _status(ended)
    return status


async def _typed() -> str:
    try:
        return (await asyncio.to_thread(input, "\n› ")).strip()
    except EOFError:
        return ""


def _status(session: Mapping[str, Any]) -> int:
    return _BY_OUTCOME.get(session["outcome"] or "", _ERROR)


async def _watch(
    session: Session, view: View, wish: _Wish, *, interruptible: bool = True
) -> tuple[Mapping[str, Any], bool]:
    """Show a session until its turn is over; returns how it stands, and whether Ctrl-C ended it."""
    stopping: list[asyncio.Task[None]] = []

    def stop() -> None:
        if stopping:
            raise KeyboardInterrupt  # it was meant
        stopping.append(asyncio.ensure_future(session.cancel()))

    loop = asyncio.get_running_loop()
    if interruptible:
        loop.add_signal_handler(signal.SIGINT, stop)
    asking: set[asyncio.Task[None]] = set()
    try:
        async with aclosing(session.events()) as events:
            async for kind, event in events:
                if kind == "session":
                    return event, bool(stopping)
                view.show(kind, event)
                data = event.get("data") or {}
                if wish.ask and kind == "tool" and data.get("status") == "needs_approval":
                    asking.add(asyncio.ensure_future(_ask(session, view, data)))
    finally:
        if interruptible:
            loop.remove_signal_handler(signal.SIGINT)
        for task in (*asking, *stopping):
            task.cancel()
        await asyncio.gather(*asking, *stopping, return_exceptions=True)
    raise StenographError("The session's events broke off")


#: One question at a time: calls of a round come at once.
_asking = asyncio.Lock()


async def _ask(session: Session, view: View, data: Mapping[str, Any]) -> None:
    """Ask for one call; without a terminal it is denied."""
    arguments = msgspec.json.encode(data.get("arguments") or {}).decode()
    async with _asking:
        try:
            said = (await asyncio.to_thread(view.ask, data["name"], arguments)).strip()
        except EOFError:
            said = "Nobody is there to ask"
    allowed = said.lower() in ("y", "yes")
    note = None if allowed or said.lower() in ("", "n", "no") else said
    # Somebody else may have decided it, or ended the turn.
    with suppress(StenographError):
        await session.decide(data["task_key"], "approve" if allowed else "deny", note)


@dataclass(slots=True)
class _Enrolled:
    device: "asyncio.Future[Device]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def ready(self, device: Device) -> None:
        self.device.set_result(device)


@asynccontextmanager
async def _working(
    server: Reached, http: httpx.AsyncClient, wish: _Wish
) -> AsyncIterator[dict[str, Any]]:
    """Run a worker for the wished folder as long as the block runs; gives the session's target.

    The server forgets the worker afterwards.
    """
    if wish.root is None:
        yield {}
        return
    enrolled, stop = _Enrolled(), asyncio.Event()
    with tempfile.TemporaryDirectory(prefix="steno-run-") as state:
        config = Config(
            url=server.url,
            root=wish.root.expanduser(),
            state=Path(state),
            key=server.key,
            name="steno run",
            allow=wish.allow,
            lifecycle="ephemeral",
            wait=1.0,
        )
        working = asyncio.ensure_future(workers.run(config, stop=stop, ready=enrolled.ready))
        try:
            both: tuple[asyncio.Future[Any], ...] = (working, enrolled.device)
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
            device = enrolled.device.result()
            yield {
                "target": {
                    "kind": "headless",
                    "device_id": device.id,
                    "root_id": device.roots[0].id,
                    "workspace_mode": "project_root",
                }
            }
        finally:
            stop.set()
            await asyncio.gather(working, return_exceptions=True)
            if enrolled.device.done():
                with suppress(httpx.HTTPError):
                    await http.delete(f"{server.root}/devices/{enrolled.device.result().id}")
