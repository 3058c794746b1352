"""`steno export` and `steno validate`: a session as an ATIF document, and a look at one."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from stenograph.cli import export_media, options, output
from stenograph.errors import InvalidInputError, NotFoundError
from stenograph.sessions import secret, session
from stenograph.trajectories.atif import check
from stenograph.trajectories.export import document
from stenograph.trajectories.redaction.masking import Tier
from stenograph.trajectories.redaction.redactor import Redactor

TIERS: tuple[Tier, ...] = ("standard", "ephemeral", "none")


def export(
    session_id: Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")],
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write it.", show_default="standard output"),
    ] = None,
    redact: Annotated[
        str | None,
        typer.Option(help="standard, ephemeral or none.", show_default="the session's own mode"),
    ] = None,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
) -> None:
    """Write a session with its subagents as one ATIF document.

    Images and audio go beside FILE, to where the document names them; a file that is there with
    another content is never replaced. `--redact none` masks nothing and is offered here only, on
    the machine that holds the record.
    """
    wanted = next((tier for tier in TIERS if tier == redact), None)
    if redact is not None and wanted is None:
        raise InvalidInputError(f"--redact takes one of {', '.join(TIERS)}", code="invalid_redact")
    if not session_id.isprintable():
        raise NotFoundError("There is no such session", code="session_not_found")
    with options.opened(data, database) as place, place.database.read() as tx:
        found = session.find(tx, place.caller, session_id)
        secrets = secret.values(tx, place.sealer, found.id)
        tier = wanted or found.mode
        redactor = Redactor(secrets, tier)
        pieces = document.trajectory(tx, found.id, redactor)
        if file is None:
            _stream(sys.stdout.buffer, pieces)
        elif file.exists() and not file.is_file() and not file.is_dir():
            with file.open("wb") as device:  # or a pipe: nothing that could be replaced whole
                _stream(device, pieces)
        else:
            scan = Redactor(() if tier == "none" else secrets, "ephemeral")
            _write(file, pieces, lambda: export_media.write(tx, found.id, file, redactor, scan))


def _stream(out: BinaryIO, pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        out.write(piece)
    out.write(b"\n")
    out.flush()


def _write(file: Path, pieces: Iterator[bytes], beside: Callable[[], list[str]]) -> None:
    """Write a file whole or not at all; `beside` then writes what goes with it."""
    if file.is_dir():
        raise InvalidInputError(f"{file} is a folder; name a file", code="invalid_output")
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with partial.open("wb") as out:
            for piece in pieces:
                out.write(piece)
            out.write(b"\n")
        for left_out in beside():
            output.fail(left_out)
        partial.replace(file)
    except OSError as error:
        raise InvalidInputError(
            f"{file} cannot be written: {error.strerror}", code="invalid_output"
        ) from None
    finally:
        partial.unlink(missing_ok=True)


def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An ATIF document.")],
    json: options.Json = False,
) -> None:
    """Check an ATIF document; what is wrong is named by JSON pointer, and the status is 1."""
    try:
        parsed = check.parse(file.read_bytes())
    except InvalidInputError as error:
        problems = error.details.get("problems") or [{"pointer": "", "message": error.message}]
        if json:
            output.emit({"valid": False, "problems": problems})
        else:
            for problem in problems:
                output.line(f"{problem['pointer'] or '/'}: {problem['message']}")
        raise typer.Exit(1) from None
    steps = len(parsed.trajectory.steps)
    if json:
        output.emit(
            {
                "valid": True,
                "version": parsed.version,
                "steps": steps,
                "problems": [],
                "warnings": parsed.warnings,
            }
        )
    else:
        for warning in parsed.warnings:
            output.line(f"warning: {warning}")
        output.line(f"{file}: valid {parsed.version}, {steps} steps")
