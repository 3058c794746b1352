"""Tools that workers run: offered as the root allows, waited for across restarts, given up."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from devices.hands import Hands
from engine.driving import Driven, scene
from engine.test_rounds import facts, feed
from people import Org
from stenograph.devices import target
from stenograph.devices.device import Device, Grant, Permissions
from stenograph.devices.target import Target
from stenograph.engine import start, store
from stenograph.engine.engine import Place
from stenograph.engine.toolboxes.leases import LOST
from stenograph.engine.toolboxes.machine import MachineTools, watch
from stenograph.engine.tools.toolbox import local
from stenograph.engine.tools.workplace import Permissions as Allowed
from stenograph.engine.work import load
from stenograph.retention.integrity import check
from stenograph.sessions import session
from stenograph.storage.database import Database, Tx
from stenograph.storage.sealing import Sealer

MACHINE = Target(None, None, "m", None)


def calling(*calls: str) -> str:
    """A scene that makes calls at once, and says what came of them."""
    made = ", ".join(calls)
    return scene(f'[[round]]\ncall = [{made}]\n[[round]]\nsay = "So: {{results}}"\n')


READ = '{ tool = "read", arguments = { path = "README.md" } }'
BASH = '{ tool = "bash", arguments = { command = "echo done >> log; cat log" } }'


@pytest.fixture
def driven(database: Database, org: Org, tmp_path: Path) -> Driven:
    """An engine whose sessions have workers for hands."""
    made = Driven(database, org.owner, Place(f"sqlite:///{tmp_path / 'engine.db'}"))
    made.tools = MachineTools(made.desk())  # type: ignore[assignment]
    return made


@pytest.fixture
def hands(driven: Driven, sealer: Sealer) -> Hands:
    return Hands(driven.database, driven.owner, sealer)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A worker's folder."""
    found = tmp_path / "root"
    found.mkdir()
    (found / "README.md").write_text("A file of the worker.\n")
    return found


def opened(driven: Driven, prompt: str, where: Target | None) -> str:
    def act(tx: Tx) -> str:
        found = start.open_session(tx, driven.owner, start.NewSession(), prompt)
        target.give(tx, found.id, where)
        return found.public_id

    return driven.write(act)


def working(hands: Hands, worker: Device, folder: Path) -> Callable[[], Awaitable[None]]:
    """A worker that does what it can claim in its folder, until it is cancelled."""

    async def work() -> None:
        while True:
            taken = hands.claim(worker, free=9)
            if taken is None:
                await asyncio.sleep(0.01)
                continue
            box = local(folder, Allowed(True, True, True), taken.environment)
            name = taken.dispatch.name or ""
            outcome = await box.call(name, taken.arguments, resumed=taken.resumed)
            hands.settle(worker, taken.claim_id, outcome.output, outcome.status)

    return work


async def with_worker(driven: Driven, work: Callable[[], Awaitable[None]]) -> None:
    doing = asyncio.ensure_future(work())
    await driven.settled()
    doing.cancel()
    with suppress(asyncio.CancelledError):
        await doing


def said(driven: Driven, session_id: str) -> str:
    return str(feed(driven, session_id)[-1][1])


def waits(status: str, count: int = 1) -> Callable[[Tx], bool]:
    """Whether so many calls stand like this."""

    def look(tx: Tx) -> bool:
        sql = "SELECT count(*) FROM dispatches WHERE status = :status"
        return bool(tx.value(sql, status=status) == count)

    return look


def test_a_session_s_tools_are_run_by_its_worker(
    driven: Driven, hands: Hands, folder: Path
) -> None:
    worker = hands.worker()
    session_id = opened(driven, calling(READ, BASH), hands.on(worker))
    driven.during(lambda: with_worker(driven, working(hands, worker, folder)))
    assert "A file of the worker." in said(driven, session_id)
    assert "done" in said(driven, session_id)
    assert facts(driven, session_id).outcome == "success"
    assert hands.dispatches() == ["completed", "completed"]
    assert check(driven.database) == []


def names(driven: Driven, session_id: str) -> list[str]:
    """The tools that a session's agent is offered."""

    def look(tx: Tx) -> object:
        found = session.find(tx, driven.owner, session_id)
        return load(tx, store.unsettled_of(tx, found.id)[0])

    work = driven.read(look)
    specs = asyncio.run(driven.tools.specs(work))  # type: ignore[arg-type]
    return [it.name for it in specs]


def test_what_a_root_does_not_allow_is_not_offered(driven: Driven, hands: Hands) -> None:
    everything = ["bash", "read", "write", "edit", "glob", "grep"]
    granted = {
        Permissions(read=True): ["read", "glob", "grep"],
        Permissions(write=True): ["write"],
        Permissions(execute=True): ["bash"],
        Permissions(discover_environment=True, expose_mcp=True): [],
        Permissions(read=True, write=True, execute=True): everything,
    }
    for may, offered in granted.items():
        worker = hands.worker(roots=[Grant("ab" * 32, may)])
        assert names(driven, opened(driven, "hi", hands.on(worker))) == offered
    assert names(driven, opened(driven, "hi", MACHINE)) == everything
    assert names(driven, opened(driven, "hi", None)) == []


def test_a_machine_s_session_may_do_what_the_root_allows_that_it_was_bound_to(
    driven: Driven, hands: Hands
) -> None:
    worker = hands.worker(machine="m", roots=[Grant("ab" * 32, Permissions(read=True))])
    session_id = opened(driven, "hi", MACHINE)
    row = driven.read(lambda tx: session.find(tx, driven.owner, session_id)).id
    driven.write(lambda tx: target.bind(tx, row, worker))
    assert names(driven, session_id) == ["read", "glob", "grep"]


def test_a_call_that_the_root_does_not_allow_is_made_by_nobody(
    driven: Driven, hands: Hands
) -> None:
    worker = hands.worker(roots=[Grant("ab" * 32, Permissions(read=True))])
    session_id = opened(driven, calling(BASH), hands.on(worker))
    driven.settle()
    assert "There is no tool named 'bash'" in said(driven, session_id)
    assert hands.dispatches() == []


def test_a_result_that_came_while_the_server_was_stopped_is_found(
    driven: Driven, hands: Hands
) -> None:
    worker = hands.worker()
    session_id = opened(driven, calling(BASH), hands.on(worker))

    async def until_offered() -> None:
        await driven.until(waits("queued"))

    driven.during(until_offered)
    taken = hands.claimed(worker)
    hands.settle(worker, taken.claim_id, "made meanwhile")
    driven.settle()
    assert said(driven, session_id) == "So: made meanwhile"
    assert hands.rows("SELECT claims FROM dispatches") == [(1,)]
    assert check(driven.database) == []


def test_a_claim_outlives_the_server_that_gave_it(driven: Driven, hands: Hands) -> None:
    worker = hands.worker()
    session_id = opened(driven, calling(BASH), hands.on(worker))
    claims = []

    async def until_claimed() -> None:
        await driven.until(waits("queued"))
        claims.append(hands.claimed(worker).claim_id)

    driven.during(until_claimed)

    async def settled_then() -> None:
        # The run is taken up, and waits for the same claim.
        assert hands.extend(worker, claims[0]).canceled is False
        hands.settle(worker, claims[0], "made by the first claim")
        await driven.settled()

    driven.during(settled_then)
    assert said(driven, session_id) == "So: made by the first claim"
    assert hands.rows("SELECT claims FROM dispatches") == [(1,)]


def test_a_call_waits_for_a_worker_to_come(driven: Driven, hands: Hands, folder: Path) -> None:
    session_id = opened(driven, calling(READ), MACHINE)

    async def act() -> None:
        await driven.until(waits("queued"))
        assert facts(driven, session_id).status == "running"
        worker = hands.worker(machine="m")
        await with_worker(driven, working(hands, worker, folder))

    driven.during(act)
    assert "A file of the worker." in said(driven, session_id)


def test_a_session_that_is_cancelled_stops_its_worker(driven: Driven, hands: Hands) -> None:
    worker = hands.worker()
    session_id = opened(driven, calling(BASH, READ), hands.on(worker))

    async def act() -> None:
        await driven.until(waits("queued", 2))
        taken = hands.claimed(worker)
        driven.write(lambda tx: start.cancel_session(tx, driven.owner, session_id))
        await driven.settled()
        assert hands.extend(worker, taken.claim_id).canceled
        assert hands.claim(worker) is None
        assert hands.settle(worker, taken.claim_id, "late").canceled

    driven.during(act)
    assert facts(driven, session_id).status == "cancelled"
    assert {status for status, _ in hands.tasks().values()} == {"canceled"}
    assert check(driven.database) == []


def test_an_agent_goes_on_when_a_worker_is_lost(driven: Driven, hands: Hands) -> None:
    worker = hands.worker()
    session_id = opened(driven, calling(BASH), hands.on(worker))

    async def act() -> None:
        watching = asyncio.create_task(watch(driven.desk()))
        await driven.until(waits("queued"))
        hands.claimed(worker)
        hands.lose_leases()
        watching.cancel()
        watching = asyncio.create_task(watch(driven.desk()))  # it looks at once
        await driven.settled()
        watching.cancel()

    driven.during(act)
    assert LOST in said(driven, session_id)
    assert facts(driven, session_id).outcome == "success"
    assert hands.tasks()["bash"][0] == "uncertain"


def test_a_watch_goes_on_after_a_database_that_was_away(
    driven: Driven, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stenograph.engine.toolboxes import leases, machine

    worker = hands.worker()
    hands.call(hands.session(hands.on(worker)), "bash")
    hands.claimed(worker)
    hands.lose_leases()
    looks = []
    is_due = leases.is_due

    def falter(tx: Tx) -> bool:
        looks.append(tx)
        if len(looks) == 1:
            raise OSError("the database is away")
        return is_due(tx)

    monkeypatch.setattr(leases, "is_due", falter)
    monkeypatch.setattr(machine, "LOOK", 0.01)

    async def act() -> None:
        watching = asyncio.create_task(watch(driven.desk()))
        await driven.until(waits("uncertain"))
        watching.cancel()

    asyncio.run(act())
    assert len(looks) > 1
