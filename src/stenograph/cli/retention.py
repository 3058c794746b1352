"""`steno retention`, `steno prune` and `steno db check`: what is forgotten, and when; is the rest
whole?"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from stenograph.cli import options, output
from stenograph.errors import InvalidInputError
from stenograph.retention import integrity, policy
from stenograph.retention import prune as pruning
from stenograph.retention.prune import PruneReport


def retention(
    days: Annotated[
        str | None,
        typer.Argument(
            metavar="[DAYS|off]",
            help="Keep details so many days, or for good.",
            show_default="show",
        ),
    ] = None,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
) -> None:
    """Show or set after how many days execution detail is pruned.

    A longer time, or none, brings nothing back.
    """
    if days is not None and days != "off" and not (days.isascii() and days.isdigit()):
        raise InvalidInputError("Say a number of days, or off", code="validation_failed")
    wanted = None if days in (None, "off") else int(days)
    with options.opened(data, database) as place:
        if days is not None:
            place.database.write(lambda tx: policy.set_retention_days(tx, place.caller, wanted))
        with place.database.read() as tx:
            kept = policy.retention_days(tx, place.caller)
    if json:
        output.emit({"execution_details_retention_days": kept})
    else:
        output.line("off: details stay" if kept is None else f"{kept} days")


def prune(
    older_than: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="DAYS",
            help="Prune work that ended that long ago; 0: everything that has ended. Without it,"
            " a log's details age from its import where that was later.",
            show_default="each organization's own number of days",
        ),
    ] = None,
    organization: Annotated[
        str | None, typer.Option(metavar="SLUG", help="Prune only this one.", show_default="all")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Do not write the tables anew: deleted bytes may stay in the files for a while.",
        ),
    ] = False,
    data: options.Data = None,
    database: options.DatabaseUrl = None,
    json: options.Json = False,
) -> None:
    """Delete execution detail that has expired: reasoning, tool inputs and outputs, requests.

    Turns, prompts, follow-ups, answers and usage stay. A prune that is stopped may be started
    again; it goes on where it was.
    """
    with options.opened(data, database) as place, _progress(quiet=json) as tell:
        done = pruning.prune(
            place.database,
            older_than,
            organization=organization,
            rewrite=not quick,
            progress=tell,
        )
    if json:
        output.emit(done)
        return
    for report in done.reports:
        output.line(_sentence(report))
    if not done.erased:
        output.line(
            "The deleted bytes may still lie in the database's log: a reader held on to it, or"
            " the right to empty it was lacking (docs/decisions/0022). Another prune tries again."
        )


def _sentence(report: PruneReport) -> str:
    if report.days is None:
        return f"{report.organization}: retention is off, nothing was deleted"
    skipped = f"; {report.skipped} still in use" if report.skipped else ""
    return (
        f"{report.organization}: details of {report.runs} runs and {report.direct_replies}"
        f" direct replies, older than {report.days} days, were deleted{skipped}"
    )


@contextmanager
def _progress(*, quiet: bool) -> Iterator[pruning.Progress | None]:
    """Show on a terminal how many have gone."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed} pruned"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("prune", total=None)
        yield lambda done: bar.update(task, completed=done)


def check(
    data: options.Data = None, database: options.DatabaseUrl = None, json: options.Json = False
) -> None:
    """Check that the record is whole: rows, sequences, totals, states. Status 1 if it is not."""
    with options.opened(data, database) as place:
        found = integrity.check(place.database)
    if json:
        output.emit({"findings": found})
    else:
        for finding in found:
            output.line(f"{finding.table} {finding.id}: {finding.sentence}")
        output.line(f"{len(found)} findings" if found else "The record is whole")
    if found:
        raise typer.Exit(1)
