"""`steno worker`: run the tools of agents on this machine, and the tickets that let one do so."""

import asyncio
import os
import shlex
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import structlog
import typer

from stenograph.cli import options, output
from stenograph.engine.tools.workplace import Permissions
from stenograph.errors import InvalidInputError
from stenograph.worker import config as configs
from stenograph.worker import masking
from stenograph.worker.config import Config, Tell, Ticket
from stenograph.worker.wire import Device

#: The exit status of a worker that its server does not know any more.
REVOKED = 3

app = typer.Typer(invoke_without_command=True)

Url = Annotated[str, typer.Option("--url", help="The server [STENO_URL].", envvar="STENO_URL")]
Root = Annotated[
    Path | None, typer.Option("--root", help="The folder that agents work in.", show_default=False)
]
State = Annotated[
    Path,
    typer.Option("--state", help="Where a worker keeps what it is, for its owner only."),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        help="An API key that holds devices:write; better in STENO_API_KEY or a file.",
        show_default=False,
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key-file", help="A file that holds it: keys.json, or the key alone."),
]
Name = Annotated[
    str | None, typer.Option(help="What the worker is called.", show_default="this machine's name")
]
Machine = Annotated[
    str | None, typer.Option(help="The queue that the worker serves.", show_default=False)
]
Allow = Annotated[str, typer.Option(help="What the folder may be used for, with commas between.")]
Ephemeral = Annotated[
    bool, typer.Option("--ephemeral", help="Enrol anew at each start, and keep no secret.")
]

_SERVER = "http://127.0.0.1:8642"
_ALLOW = "read,write,execute"


@app.callback()
def work(
    context: typer.Context,
    url: Url = _SERVER,
    root: Root = None,
    state: State = configs.STATE,
    key: Key = None,
    key_file: KeyFile = None,
    name: Name = None,
    machine: Machine = None,
    allow: Allow = _ALLOW,
    ephemeral: Ephemeral = False,
    ticket: Annotated[
        str | None,
        typer.Option(help="A ticket; better in STENO_TICKET or a file.", show_default=False),
    ] = None,
    ticket_file: Annotated[
        Path | None,
        typer.Option(help="A file that holds it: alone, or as `steno worker ticket --json` says."),
    ] = None,
    verifier: Annotated[
        str | None,
        typer.Option(
            help="What the ticket's challenge was made of [STENO_VERIFIER].",
            show_default="that of `steno worker ticket`",
        ),
    ] = None,
    install_id: Annotated[
        str | None,
        typer.Option(
            help="The install that the ticket names.",
            show_default="that of `steno worker ticket`",
        ),
    ] = None,
    parallel: Annotated[int, typer.Option(min=1, help="How many calls are run at once.")] = 4,
    sessions: Annotated[
        int, typer.Option(min=1, help="How many sessions of the queue are worked for at once.")
    ] = 1,
    once_idle: Annotated[
        float | None,
        typer.Option(
            min=0, help="Seconds without work, after which it ends.", show_default="never"
        ),
    ] = None,
    json: options.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say errors only.")] = False,
) -> None:
    """Enrol as a worker, and run what agents call below one folder until SIGTERM or SIGINT.

    The first start takes a ticket (see `steno worker ticket`) or an API key; after that the
    enrolment is kept and neither is needed. `bash` runs whatever the user may who runs this: the
    folder is where commands start, not a jail. Status 3: the enrolment was revoked.
    """
    if context.invoked_subcommand is not None:
        return
    config = Config(
        url=url,
        root=_given(root),
        state=state,
        ticket=_ticket(ticket, ticket_file, verifier, install_id),
        key=_key(key, key_file),
        name=name or socket.gethostname(),
        machine=machine,
        allow=_permissions(allow),
        lifecycle="ephemeral" if ephemeral else "persistent",
        parallel=parallel,
        sessions=sessions,
        idle=once_idle,
    )
    masking.hide(filter(None, (ticket, verifier, key)))
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            masking.mask_log_event,
            structlog.dev.ConsoleRenderer(colors=False),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    # Imported here: other commands start faster without it.
    from stenograph.worker.enrolment import RevokedError

    try:
        asyncio.run(_until_told(config, configs.silent if quiet else _emit if json else _say))
    except RevokedError as error:
        output.fail(error.message)
        raise typer.Exit(REVOKED) from None


async def _until_told(config: Config, tell: Tell) -> None:
    from stenograph.worker.run import run

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def ready(device: Device) -> None:
        allowed = device.roots[0].permissions.permissions()
        names = [word for word in _ALLOW.split(",") if getattr(allowed, word)]
        tell(
            "ready",
            device=device.id,
            root_id=device.roots[0].id,
            name=device.name,
            machine=device.machine,
            root=str(config.root),
            allow=names,
        )

    await run(config, stop=stop, ready=ready, tell=tell)


@app.command()
def ticket(
    url: Url = _SERVER,
    root: Root = None,
    state: State = configs.STATE,
    key: Key = None,
    key_file: KeyFile = None,
    name: Name = None,
    machine: Machine = None,
    allow: Allow = _ALLOW,
    ephemeral: Ephemeral = False,
    ttl: Annotated[
        int, typer.Option("--ttl", min=1, max=86_400, help="Seconds for which it is good.")
    ] = 3_600,
    json: options.Json = False,
) -> None:
    """Make a ticket that lets one worker enrol, once, and say how to start that worker.

    For a worker of another machine, name its folder by the real path there, and hand the line that
    --json prints to its --ticket-file.
    """
    config = Config(
        url=url,
        root=_given(root),
        state=state,
        key=_key(key, key_file),
        name=name,
        machine=machine,
        allow=_permissions(allow),
        lifecycle="ephemeral" if ephemeral else "persistent",
    )
    if config.key is None:
        raise InvalidInputError(
            "A ticket is made with an API key: STENO_API_KEY, --key-file or --key", code="no_key"
        )
    from stenograph.worker import place
    from stenograph.worker.run import make_ticket

    made = asyncio.run(make_ticket(config, ttl))
    real = place.real(config.root)
    if json:
        output.emit(
            {
                "enrollment_ticket": made.ticket,
                "code_verifier": made.verifier,
                "install_id": made.install_id,
                "path_fingerprint": place.fingerprint(real),
                "root": real,
            }
        )
        return
    command = ["steno", "worker", "--url", url, "--root", real]
    if state != configs.STATE:
        command += ["--state", str(state)]
    output.line(made.ticket)
    output.line(f"STENO_TICKET={made.ticket} {shlex.join(command)}")


def _given(root: Path | None) -> Path:
    if root is None:
        raise InvalidInputError("Name the folder to work in: --root DIR", code="no_root")
    return root


def _permissions(allow: str) -> Permissions:
    words = {word.strip() for word in allow.split(",")} - {""}
    if not words or words - set(_ALLOW.split(",")):
        raise InvalidInputError(f"--allow takes some of {_ALLOW}", code="invalid_allow")
    return Permissions(**{word: word in words for word in _ALLOW.split(",")})


def _key(key: str | None, file: Path | None) -> str | None:
    if file is not None:
        said = _file(file)
        key = str(said.get("api", "")) if isinstance(said, dict) else said
    return key or os.environ.get("STENO_API_KEY") or None


def _ticket(
    ticket: str | None, file: Path | None, verifier: str | None, install_id: str | None
) -> Ticket | None:
    verifier = verifier or os.environ.get("STENO_VERIFIER")
    if file is not None:
        said = _file(file)
        if isinstance(said, dict):
            ticket = said.get("enrollment_ticket")
            verifier = verifier or said.get("code_verifier")
            install_id = install_id or said.get("install_id")
        else:
            ticket = said
    ticket = ticket or os.environ.get("STENO_TICKET")
    return Ticket(ticket, verifier, install_id) if ticket else None


def _file(file: Path) -> Any:
    """Read a file that holds JSON, or one word."""
    data = file.read_bytes()
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data.decode(errors="replace").strip()


def _emit(event: str, **facts: Any) -> None:
    output.emit({"event": event, **facts})
    sys.stdout.flush()


def _say(event: str, **facts: Any) -> None:
    match event:
        case "ready":
            queue = f", serves {facts['machine']}" if facts["machine"] else ""
            may = ", ".join(facts["allow"])
            text = f"{facts['name']} ({facts['device']}){queue}; {facts['root']}: {may}"
        case "call":
            text = (
                f"{facts['tool']:<6} {facts['status']:<10} {facts['ms']:>9,} ms  {facts['session']}"
            )
        case "stopping":
            text = f"Stopping; calls that still run: {facts['calls']}"
        case "away":
            text = f"{facts['reason']}; trying again"
        case _:
            text = "The server is back"
    output.line(text)
    sys.stdout.flush()
