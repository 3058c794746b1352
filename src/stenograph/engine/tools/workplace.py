"""What every tool of one worker shares: its root, what it may do there, and how much of it."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from stenograph.engine.tools.root import Root

Permission: TypeAlias = Literal["read", "write", "execute"]


@dataclass(frozen=True, slots=True)
class Permissions:
    """What a root may be used for (reason-api.md 3). `execute` is whatever the user who runs the
    worker may do: a shell is started in the root, not locked into it."""

    read: bool = True
    write: bool = False
    execute: bool = False

    def missing(self, needed: tuple[Permission, ...]) -> tuple[Permission, ...]:
        """Return which of the needed permissions are not given."""
        return tuple(one for one in needed if not getattr(self, one))


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one call may take.

    Seconds: `timeout` unless the call asks for another, `longest_timeout` whatever it asks for.
    Bytes: `output` of what is given back, `file` of what `edit` changes. `found` results of a
    search, among `entries` files and folders looked at.
    """

    timeout: float = 120.0
    longest_timeout: float = 3_600.0
    output: int = 8 << 20
    file: int = 32 << 20
    found: int = 1_000
    entries: int = 200_000


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where tools work. `env` is all that commands see of the environment, secrets included.

    `watch` hears what a command writes, while it writes; it neither waits nor raises.
    """

    root: Root
    permissions: Permissions
    limits: Limits
    env: Mapping[str, str] = field(repr=False)
    #: One change of a file at a time: two edits of a round would lose each other's.
    changing: threading.Lock = field(default_factory=threading.Lock, repr=False)
    watch: Callable[[bytes], None] | None = field(default=None, repr=False)
