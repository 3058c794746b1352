"""`steno export` and `steno validate`: a session as an ATIF document, and a look at one."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from stenograph.cli import options, output
from stenograph.errors import InvalidInputError
from stenograph.sessions import secret, session
from stenograph.storage.database import Tx
from stenograph.trajectories.atif import check
from stenograph.trajectories.export import document, store
from stenograph.trajectories.redaction.redactor import Redactor

TIERS = ("standard", "ephemeral", "none")


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

    Images and audio go into the folder `media` beside FILE. `--redact none` masks nothing and is
    offered here only, on the machine that holds the record.
    """
    if redact not in (None, *TIERS):
        raise InvalidInputError(f"--redact takes one of {', '.join(TIERS)}", code="invalid_redact")
    with options.opened(data, database) as place, place.database.read() as tx:
        found = session.find(tx, place.caller, session_id)
        secrets = secret.values(tx, place.sealer, found.id)
        tier = redact or ("ephemeral" if found.mode == "ephemeral" else "standard")
        pieces = document.trajectory(tx, found.id, Redactor(secrets, tier))  # type: ignore[arg-type]
        if file is None:
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.write(b"\n")
            sys.stdout.buffer.flush()
        else:
            _write(file, pieces)
            _write_media(tx, file.parent, found.id)


def _write(file: Path, pieces: Iterator[bytes]) -> None:
    """Write a file whole or not at all."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with partial.open("wb") as out:
            for piece in pieces:
                out.write(piece)
            out.write(b"\n")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _write_media(tx: Tx, folder: Path, conversation_id: int) -> None:
    """Write the files that the document's steps name, to where they name them."""
    children = store.tree(tx, conversation_id)
    everyone = [conversation_id, *(child for found in children.values() for child in found)]
    for owner, path in store.media_paths(tx, everyone):
        media = store.media(tx, owner, path)
        target = (folder / path).resolve()
        if media is None or not target.is_relative_to(folder.resolve()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(media[1])


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
