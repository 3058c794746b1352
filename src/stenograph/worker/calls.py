"""One call, from its claim to its settlement."""

import asyncio
import time
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from stenograph import clock
from stenograph.engine.toolbox import ToolOutcome
from stenograph.engine.tools.result import ToolError
from stenograph.engine.tools.toolbox import TOOLS
from stenograph.errors import UnauthorizedError
from stenograph.worker import masking, progress
from stenograph.worker.client import AwayError, Client, RefusedError, StaleError, TooLargeError
from stenograph.worker.config import Config, Tell
from stenograph.worker.journal import Entry, Journal
from stenograph.worker.place import Place
from stenograph.worker.retrying import end, insist
from stenograph.worker.wire import Claim, Settlement, settlement

_log = structlog.get_logger("stenograph.worker")

_REPEATABLE = frozenset(tool.name for tool in TOOLS if tool.repeatable)
#: Characters of an output that are sent, one after the other, to a server that takes no more.
_SIZES = (1_000_000, 250_000, 64_000, 16_000, 4_000)


@dataclass
class Bench:
    """What all calls of a worker share. `halted` is set when they have to end at once."""

    config: Config
    client: Client
    serves_queue: bool
    root_id: str
    place: Place
    journal: Journal
    tell: Tell
    halted: asyncio.Event = field(default_factory=asyncio.Event)
    is_away: bool = False

    def away(self, error: AwayError) -> None:
        """Take note that the server did not answer."""
        if not self.is_away:
            self.is_away = True
            self.tell("away", reason=error.message)

    def back(self) -> None:
        """Take note that it did."""
        if self.is_away:
            self.is_away = False
            self.tell("back")

    def note(self, job: "Job", told: Settlement | None) -> None:
        """Keep a call in the journal, as begun or with what came of it."""
        at = clock.now()
        entry = Entry(job.task, job.claim_id, job.session_id, job.tool, at, told)
        self.journal.keep(entry, masking.mask)


@dataclass
class Job:
    """A call that this worker has. `claim_id`: the latest under which it has it; `claim`: what is
    to be done; `known`: what came of it, where that is known from before."""

    task: str
    claim_id: str
    session_id: str
    tool: str
    claim: Claim | None = None
    known: Settlement | None = None


def of(claim: Claim, journal: Journal, stopping: bool) -> Job:
    """Return the job of a claim; done already, if it was done under an earlier one."""
    known = None
    if before := journal.entries.get(claim.task):
        known = before.settlement
    elif stopping:
        known = Settlement("failed", "The worker was stopped before it began this call")
    return Job(claim.task, claim.claim_id, claim.session_id, claim.tool.name, claim, known)


def left_over(journal: Journal) -> list[Job]:
    """Return what a former process had done, or begun and cannot say the end of."""
    jobs = []
    for entry in list(journal.entries.values()):
        if entry.settlement is None and entry.tool in _REPEATABLE:
            # Its lease runs out, and it is done again.
            journal.drop(entry.task)
        else:
            known = entry.settlement or _broken_off(entry.tool)
            jobs.append(Job(entry.task, entry.claim_id, entry.session_id, entry.tool, None, known))
    return jobs


async def see_to(bench: Bench, job: Job) -> None:
    """Do a call and settle it. Whatever goes wrong, the worker lives on."""
    began = time.monotonic()
    if job.claim is not None:
        masking.values.set(tuple(job.claim.environment.values()))
    try:
        status = await _to_its_end(bench, job)
    except Exception:
        _log.exception("call_lost", tool=job.tool)
        status = "lost"
    ms = round(1000 * (time.monotonic() - began))
    bench.tell("call", tool=job.tool, session=job.session_id, status=status, ms=ms)


async def _to_its_end(bench: Bench, job: Job) -> str:
    """Return how it ended, as a person is told."""
    if job.claim is None:
        assert job.known is not None
        return await _settle(bench, job, job.known)
    holding = asyncio.create_task(_hold(bench, job, job.claim.lease_seconds))
    try:
        told = job.known or await _result(bench, job, job.claim, holding)
        if told is None:
            bench.journal.drop(job.task)
            return await holding
        return await _settle(bench, job, told)
    finally:
        await end(holding)


async def _result(
    bench: Bench, job: Job, claim: Claim, holding: "asyncio.Task[str]"
) -> Settlement | None:
    """Return what came of doing it; None if nobody wants that any more."""
    doing = asyncio.create_task(_do(bench, job, claim))
    halting = asyncio.create_task(bench.halted.wait())
    try:
        await asyncio.wait({doing, holding, halting}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return settlement(doing.result())
        return None if holding.done() else _broken_off(job.tool)
    finally:
        # When this returns the tool has ended, and all that it started.
        await end(doing, halting)


async def _do(bench: Bench, job: Job, claim: Claim) -> ToolOutcome:
    try:
        if claim.root_id not in (None, bench.root_id):
            raise ToolError("This call is for a root folder that this worker does not have")
        box = bench.place.toolbox(claim)
    except ToolError as problem:
        return ToolOutcome("failed", str(problem))
    except OSError as problem:
        return ToolOutcome("failed", f"{claim.workspace_path}: {problem.strerror or problem}")
    resumed = claim.resumed or job.task in bench.journal.entries
    if not resumed:
        bench.note(job, None)
    async with progress.reported(bench.client, lambda: job.claim_id) as watch:
        box = replace(box, place=replace(box.place, watch=watch))
        return await box.call(claim.tool.name, claim.tool.arguments, resumed=resumed)


async def _hold(bench: Bench, job: Job, lease_seconds: float) -> str:
    """Keep the claim; returns why it is kept no longer: `canceled`, `stale`, `refused`."""
    delays = bench.config.pace.delays()
    pause = lease_seconds / 3
    while True:
        await asyncio.sleep(pause)
        claim_id = job.claim_id
        try:
            lease = await bench.client.extend(claim_id)
        except AwayError as error:
            bench.away(error)
            pause = min(max(next(delays), error.retry_after), lease_seconds / 3)
        except StaleError:
            if claim_id == job.claim_id:
                return "stale"
        except (UnauthorizedError, RefusedError):
            return "refused"
        else:
            bench.back()
            if lease.canceled:
                return "canceled"
            delays = bench.config.pace.delays()
            pause = lease.lease_seconds / 3


async def _settle(bench: Bench, job: Job, told: Settlement) -> str:
    """Give the result back. One that could not be given is kept for the next claim of its call."""
    bench.note(job, told)
    sent, is_last = told, False
    secrets = masking.values.get()
    smaller = (told.cut(size, secrets) for size in _SIZES if size < len(told.output))
    while True:
        claim_id = job.claim_id
        attempt = partial(_give, bench, job, sent)
        try:
            await insist(attempt, bench.config.pace, bench.config.patience, bench.away)
        except AwayError:
            return "unsent"
        except StaleError:
            # Unless it was claimed again while this was on its way.
            if claim_id == job.claim_id:
                bench.journal.tidy(but=job.task)
                return "stale"
        except UnauthorizedError:
            return "refused"
        except RefusedError as refused:
            _log.warning("result_refused", tool=job.tool, code=refused.code)
            cut = next(smaller, None) if isinstance(refused, TooLargeError) else None
            if is_last:
                bench.note(job, None)
                return "refused"
            is_last = cut is None
            sent = cut or Settlement("failed", f"The result was not taken. {refused.message}")
        else:
            bench.back()
            bench.journal.drop(job.task)
            return sent.status


async def _give(bench: Bench, job: Job, sent: Settlement) -> None:
    await bench.client.settle(job.claim_id, sent)


def _broken_off(tool: str) -> Settlement:
    """Return what can be said of a call that the end of its worker broke off."""
    sentence = f"The worker was ended in the middle of this call of {tool}"
    if tool in _REPEATABLE:
        return Settlement("failed", sentence)
    return Settlement("uncertain", f"{sentence}: look at what it did before you call it again.")
