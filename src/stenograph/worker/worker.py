"""A worker at work: it asks for calls as long as it has hands free, and sees each to its end."""

import asyncio
import time
from dataclasses import dataclass, field

from stenograph.errors import UnauthorizedError
from stenograph.worker import calls
from stenograph.worker.calls import Bench, Job
from stenograph.worker.client import AwayError
from stenograph.worker.enrolment import RevokedError
from stenograph.worker.retrying import end, within
from stenograph.worker.wire import Claim

#: Of the time that stopping may take, the part in which calls may end by themselves.
_FINISHING = 0.7


@dataclass
class Worker:
    """One enrolled worker; `work` runs it. `sessions`: those of its queue that it works for."""

    bench: Bench
    jobs: dict[str, Job] = field(default_factory=dict)
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    worked_at: float = field(default_factory=time.monotonic)
    #: Set when a call has ended, and when no more are to be asked for.
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, stop: asyncio.Event) -> None:
        """Work until `stop`, or until there was no work for as long as the config says.

        When it ends, by cancellation too, no tool runs any more; what was not acknowledged is in
        the journal. Raises `RevokedError`, and `RefusedError` if the server gives no work at all.
        """
        for job in calls.left_over(self.bench.journal):
            self._start(job)
        asking = asyncio.create_task(self._ask(stop))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                self.bench.tell("stopping", calls=len(self.tasks))
                self._freed.set()
                grace = self.bench.config.grace
                await asyncio.wait({asking, *self.tasks}, timeout=grace * _FINISHING)
                self.bench.halted.set()
                await asyncio.wait({stopping, *self.tasks}, timeout=grace * (1 - _FINISHING))
            if asking.done():
                await asking
        finally:
            await end(asking, stopping, *self.tasks)

    async def _ask(self, stop: asyncio.Event) -> None:
        config = self.bench.config
        delays = config.pace.delays()
        while not stop.is_set():
            self._freed.clear()
            if len(self.tasks) >= config.parallel:
                await self._freed.wait()
                continue
            seconds = self._seconds()
            if seconds <= 0:
                return
            asked_at = time.monotonic()
            free = config.sessions - len(self.sessions) if self.bench.serves_queue else 1
            try:
                got = await self.bench.client.claim(seconds, self.sessions, max(free, 0))
            except AwayError as error:
                self.bench.away(error)
                await within(max(next(delays), error.retry_after), stop)
                continue
            except UnauthorizedError:
                raise RevokedError(
                    "The server does not know this worker any more: its enrolment was revoked"
                ) from None
            self.bench.back()
            delays = config.pace.delays()
            self.sessions.difference_update(got.released)
            if got.claim is not None:
                self._take(got.claim, stop.is_set())
            elif not got.released and time.monotonic() - asked_at < seconds / 2:
                # A server that does not wait is not asked without end.
                await within(config.pace.first, stop)

    def _seconds(self) -> float:
        """Return for how long to ask; 0 or less, if there was no work for long enough."""
        config = self.bench.config
        if config.idle is None or self.tasks:
            return config.wait
        return min(config.wait, self.worked_at + config.idle - time.monotonic())

    def _take(self, claim: Claim, stopping: bool) -> None:
        if self.bench.serves_queue:
            self.sessions.add(claim.session_id)
        if job := self.jobs.get(claim.task):
            # Its lease ran out while the server was away: it goes on under the new one.
            job.claim_id = claim.claim_id
        else:
            self._start(calls.of(claim, self.bench.journal, stopping))

    def _start(self, job: Job) -> None:
        self.jobs[job.task] = job
        task = asyncio.create_task(calls.see_to(self.bench, job))
        self.tasks.add(task)
        task.add_done_callback(lambda done: self._ended(job, done))

    def _ended(self, job: Job, task: "asyncio.Task[None]") -> None:
        self.tasks.discard(task)
        del self.jobs[job.task]
        self.worked_at = time.monotonic()
        self._freed.set()
