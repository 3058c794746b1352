"""`steno import`: logs of agents enter the record."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from stenograph.cli import options, output
from stenograph.errors import InvalidInputError
from stenograph.sessions import secret
from stenograph.storage.database import Tx
from stenograph.trajectories.importers.discovery import (
    Candidate,
    find,
    read_source,
    usual_folders,
)
from stenograph.trajectories.importers.files import readable
from stenograph.trajectories.recording.record import record
from stenograph.trajectories.recording.session import Mode, Recorded
from stenograph.trajectories.redaction.redactor import Redactor

MODES: tuple[Mode, ...] = ("standard", "ephemeral")


def import_logs(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Files or folders. None: the folders in which Claude Code and Codex keep theirs.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str, typer.Option(help="How exports are masked: standard or ephemeral.")
    ] = "standard",
    secrets: Annotated[
        list[str] | None,
        typer.Option(
            "--secret",
            help="Name of a secret whose value is masked in every reading; may be repeated.",
            show_default=False,
        ),
    ] = None,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
) -> None:
    """Import logs of Claude Code and Codex, and ATIF documents.

    What a file is, is found by its content. Importing a file again changes nothing; one that has
    grown adds what is new. The status is 1 if a file could not be imported.
    """
    masking = next((word for word in MODES if word == mode), None)
    if masking is None:
        raise InvalidInputError("--mode takes standard or ephemeral", code="invalid_mode")
    found = list(find(paths or _usual(json)))
    logs = [candidate for candidate in found if candidate.format is not None]
    skipped = [candidate for candidate in found if candidate.format is None]
    recorded: list[Recorded] = []
    failed: list[dict[str, str]] = []
    with options.opened(data, database) as place:
        with place.database.read() as tx:
            sealed = secret.take(tx, place.caller, place.sealer, secrets or [])
        # Pointers name keys of the log, and a key may hold a secret like any text.
        told = Redactor(secret.opened(place.sealer, sealed), "ephemeral").text
        for candidate in _progress(logs):
            try:
                kept = _take_in(place, candidate, masking, secrets or [])
            except InvalidInputError as error:
                failed.append(_about(candidate.path, error=told(error.message)))
            else:
                recorded += [replace(r, warnings=[told(w) for w in r.warnings]) for r in kept]
    if json:
        output.emit(
            {
                "sessions": recorded,
                "failed": failed,
                "skipped": [_about(c.path, reason=c.reason or "") for c in skipped],
            }
        )
    else:
        _report(recorded, failed, skipped)
    if failed:
        raise typer.Exit(1)


def _about(path: Path, **said: str) -> dict[str, str]:
    """Say something of a file, in text that can be printed whatever its name is."""
    return {name: readable(text) for name, text in {"path": str(path), **said}.items()}


def _usual(quiet: bool) -> list[Path]:
    """Return the usual folders of both tools, after naming them."""
    folders = usual_folders(Path.home(), os.environ)
    if not folders:
        raise InvalidInputError("Neither Claude Code nor Codex has a log folder here; name a path")
    if not quiet:
        output.line("Importing from " + ", ".join(map(str, folders)))
    return folders


def _take_in(
    place: options.Place, candidate: Candidate, mode: Mode, secrets: list[str]
) -> list[Recorded]:
    """Read a log and record all of it in one transaction."""
    drafts = read_source(candidate)

    def keep(tx: Tx) -> list[Recorded]:
        sealed = secret.take(tx, place.caller, place.sealer, secrets)
        values = secret.opened(place.sealer, sealed)
        return [
            recorded
            for draft in drafts
            for recorded in record(
                tx,
                place.caller,
                draft,
                mode=mode,
                secrets=sealed,
                values=values,
            )
        ]

    return place.database.write(keep)


def _progress(logs: list[Candidate]) -> Iterator[Candidate]:
    """Go through logs, with a bar on standard error where a person watches long work."""
    if len(logs) < 2 or not sys.stderr.isatty():
        yield from logs
        return
    with _bar(len(logs)) as advance:
        for candidate in logs:
            yield candidate
            advance(candidate.path.name)


@contextmanager
def _bar(total: int) -> Iterator[Any]:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda name: progress.update(task, advance=1, description=name)


def _report(
    recorded: Iterable[Recorded], failed: list[dict[str, str]], skipped: list[Candidate]
) -> None:
    columns = ("session_id", "change", "format", "turns", "steps", "title")
    rows = [msgspec.to_builtins(found) for found in recorded]
    for row in rows:
        row["title"] = _plain(row["title"] or "")
        if row["parent_session_id"] is not None:
            row["title"] = f"  └ {row['title']}"
    output.table(columns, rows)
    for row in rows:
        for warning in row["warnings"]:
            output.line(_plain(f"{row['session_id']}: {warning}"))
        if row["kept_aside"]:
            aside = ", ".join(f"{n} {kind}" for kind, n in sorted(row["kept_aside"].items()))
            output.line(f"{row['session_id']}: kept in the original bytes only: {aside}")
    for candidate in skipped:
        output.line(_plain(f"Left out {readable(str(candidate.path))}: {candidate.reason}"))
    for failure in failed:
        output.fail(_plain(f"{failure['path']}: {failure['error']}"))


def _plain(text: str) -> str:
    """Return text without control characters: a log's must not steer the terminal."""
    return "".join(c if c.isprintable() or c == " " else "\ufffd" for c in text)
