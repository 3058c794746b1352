"""Workers that enroll and calls that wait for them, made by the rooms' own verbs."""

import base64
import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from stenograph.accounts import access
from stenograph.accounts.access import Caller
from stenograph.clock import now
from stenograph.devices import device, dispatch, target, ticket
from stenograph.devices.device import Device, Grant, Permissions
from stenograph.devices.dispatch import Wish
from stenograph.devices.target import Target
from stenograph.devices.ticket import Enrolled, Enrollment, NewTicket, RootSent
from stenograph.engine import start, store
from stenograph.engine.toolbox import ToolOutcome
from stenograph.engine.toolboxes import leases
from stenograph.engine.work import load
from stenograph.runs import run as runs
from stenograph.runs import task as tasks
from stenograph.runs.task import Call
from stenograph.sessions import store as sessions
from stenograph.sessions.creation import NewSession
from stenograph.storage.database import Database, Tx
from stenograph.storage.sealing import Sealer

T = TypeVar("T")

VERIFIER = "v" * 43
ALL = Permissions(read=True, write=True, execute=True)


def challenge(verifier: str) -> str:
    hashed = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()


def new_ticket(**more: Any) -> NewTicket:
    """A ticket for a worker that may do all in one folder; `more` replaces any of it."""
    about: dict[str, Any] = {
        "install_id": str(uuid.uuid4()),
        "lifecycle": "persistent",
        "ttl_seconds": 600,
        "code_challenge": challenge(VERIFIER),
        "roots": [Grant("ab" * 32, ALL)],
    }
    return msgspec.convert(msgspec.to_builtins(NewTicket(**about | more)), NewTicket)


def enrollment(new: NewTicket, secret: str, **more: Any) -> Enrollment:
    """What a worker sends that has the ticket `secret`."""
    about: dict[str, Any] = {
        "ticket": secret,
        "code_verifier": VERIFIER,
        "install_id": new.install_id,
        "version": device.PROTOCOL,
        "roots": [RootSent(root.path_fingerprint) for root in new.roots],
    }
    return Enrollment(**about | more)


@dataclass
class Hands:
    """A database with workers and sessions whose agents call tools; no engine runs."""

    database: Database
    owner: Caller
    sealer: Sealer

    def write(self, act: Callable[[Tx], T]) -> T:
        return self.database.write(act)

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        with self.database.read() as tx:
            return tx.rows(sql, **params)

    def enroll(self, caller: Caller | None = None, version: str = "1", **more: Any) -> Enrolled:
        """Enroll a worker."""
        new = new_ticket(**more)
        secret, _ = self.write(lambda tx: ticket.create(tx, caller or self.owner, new))
        sent = enrollment(new, secret, version=version)
        return self.write(lambda tx: ticket.use(tx, sent))

    def worker(self, **more: Any) -> Device:
        """Enroll a worker, and return its device as it calls for the first time."""
        return self.heard(self.enroll(**more))

    def heard(self, enrolled: Enrolled) -> Device:
        return self.write(lambda tx: device.seen(tx, access.resolve(tx, enrolled.secret)))

    def on(self, worker: Device) -> Target:
        """The target of a session that works on a worker and no other."""
        return Target(worker.id, worker.roots[0].id, None, None, worker.roots[0].grant.permissions)

    def session(self, where: Target | None, parent: int | None = None, **facts: Any) -> int:
        """Open a session whose agent has begun to work, and return its row."""

        def act(tx: Tx) -> int:
            found = start.open_session(tx, self.owner, NewSession(**facts), "Do it.")
            if parent is None:
                target.give(tx, found.id, where)
            else:
                sessions.update(tx, found.id, parent_conversation_id=parent)
                target.inherit(tx, parent, found.id)
            (candidate,) = store.unsettled_of(tx, found.id)
            work = load(tx, candidate)
            assert work is not None
            runs.open(tx, work.turn, work.variant)
            return found.id

        return self.write(act)

    def call(self, session_id: int, *names: str, **arguments: Any) -> list[str]:
        """Have a session's agent call tools of workers, and return their keys."""

        def act(tx: Tx) -> list[str]:
            candidate = self.candidate(tx, session_id)
            work = load(tx, candidate)
            assert work is not None
            assert work.run is not None
            given = msgspec.json.encode(arguments).decode()
            calls = [Call(name, given, f"call-{name}") for name in names]
            made = tasks.add_calls(tx, work.run, tasks.add_round(tx, work.run), calls)
            for task in made:
                tasks.start(tx, work.run, task)
                assert leases.offer(tx, candidate, task.key)
            return [task.key for task in made]

        return self.write(act)

    def candidate(self, tx: Tx, session_id: int) -> str:
        found = tx.value(
            "SELECT v.public_id FROM variants v JOIN turns t ON t.id = v.turn_id"
            " WHERE t.conversation_id = :id AND v.prompt IS NOT NULL ORDER BY v.id DESC LIMIT 1",
            id=session_id,
        )
        return str(found)

    def public(self, session_id: int) -> str:
        return str(
            self.rows("SELECT public_id FROM conversations WHERE id = :id", id=session_id)[0][0]
        )

    def claim(self, worker: Device, *sessions: str, free: int = 1) -> leases.Claimed | None:
        wish = Wish(sessions, free)
        return self.write(lambda tx: leases.claim(tx, self.sealer, worker, wish))

    def claimed(self, worker: Device, *sessions: str, free: int = 1) -> leases.Claimed:
        found = self.claim(worker, *sessions, free=free)
        assert found is not None
        return found

    def settle(
        self, worker: Device, claim_id: str, output: str = "done", status: Any = "completed"
    ) -> leases.Settled:
        outcome = ToolOutcome(status, output)
        return self.write(lambda tx: leases.settle(tx, worker, claim_id, outcome))

    def extend(self, worker: Device, claim_id: str) -> dispatch.Lease:
        return self.write(lambda tx: dispatch.extend(tx, worker, claim_id))

    def expire(self) -> None:
        self.write(leases.expire)

    def lose_leases(self) -> None:
        """Let every lease be over."""
        self.write(lambda tx: tx.run("UPDATE dispatches SET lease_expires_at = 1"))

    def unseen(self, worker: Device, seconds: int) -> None:
        """Let a worker have been heard of that long ago."""
        at = now() - seconds * 1_000_000
        self.write(
            lambda tx: tx.run(
                "UPDATE devices SET last_seen_at = :at WHERE id = :id", at=at, id=worker.id
            )
        )

    def tasks(self) -> dict[str, tuple[str, str | None]]:
        """How each call stands, with its output, by its tool's name."""
        rows = self.rows(
            "SELECT k.name, k.status, d.output FROM tasks k"
            " LEFT JOIN task_details d ON d.task_id = k.id WHERE k.kind = 'tool_task' ORDER BY k.id"
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def dispatches(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT status FROM dispatches ORDER BY id")]
