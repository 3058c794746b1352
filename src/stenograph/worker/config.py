"""What a worker is told when it is started."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from stenograph.engine.tools.workplace import Limits, Permissions
from stenograph.worker.wire import Lifecycle

#: Where enrolments and outcomes that were not acknowledged are kept.
STATE = Path("~/.stenograph/worker")

#: What a worker says of itself: a word for what happened, and facts without any secret.
Tell: TypeAlias = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between attempts while the server is away: from `first` on doubled, to `longest`."""

    first: float = 0.5
    longest: float = 15.0

    def delays(self) -> Iterator[float]:
        """Yield them, each up to a half shorter, so that many workers do not come back at once."""
        delay = self.first
        while True:
            yield delay * random.uniform(0.5, 1)  # noqa: S311 - no secret
            delay = min(2 * delay, self.longest)


@dataclass(frozen=True, slots=True)
class Ticket:
    """Somebody else's permission to enrol, and what proves that it was given to this worker.

    What is None lies in the state folder, if `steno worker ticket` made the ticket there.
    """

    ticket: str
    verifier: str | None = None
    install_id: str | None = None


#: What a root may be used for, unless somebody says otherwise.
ALLOW = Permissions(read=True, write=True, execute=True)


@dataclass(frozen=True, slots=True)
class Config:
    """How to work. `ticket` or `key` (an API key with `devices:write`) enrols; without either an
    enrolment of the state folder is used.

    `machine`: the queue that it serves, besides what is addressed to it. `allow` and `lifecycle`
    are for an enrolment by `key`; a ticket brings its own. `parallel` calls at once, and,
    where it serves a queue, for `sessions` at once. `idle`: seconds without work after which it
    ends by itself. `grace`: seconds
    that stopping may take. `wait`: seconds that one request for work waits; a stopping worker
    waits as long, lest work is handed to nobody. `patience`: seconds for which a result, or an
    enrolment, is sent again and again.
    """

    url: str
    root: Path
    state: Path = STATE
    ticket: Ticket | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    name: str | None = None
    machine: str | None = None
    allow: Permissions = ALLOW
    lifecycle: Lifecycle = "persistent"
    parallel: int = 4
    sessions: int = 1
    idle: float | None = None
    grace: float = 10.0
    wait: float = 5.0
    patience: float = 600.0
    limits: Limits = field(default_factory=Limits)
    pace: Pace = Pace()


def silent(event: str, **facts: Any) -> None:
    """Tell nobody."""
