"""Answers of writes reach the coroutines that wait for them, whatever becomes of either."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from stenograph.errors import ConflictError
from stenograph.http.handover import Handover
from stenograph.storage.database import Database, Tx

COUNT = 300


def add(tx: Tx, number: int) -> int:
    tx.insert(
        "organizations", public_id=f"o{number}", slug=f"o{number}", name="O", created_at=number
    )
    return number


def refuse(tx: Tx) -> None:
    add(tx, -1)
    raise ConflictError("No")


async def write_all(handover: Handover, first: int = 0) -> list:
    jobs = [handover.write(lambda tx, n=n: add(tx, n)) for n in range(first, first + COUNT)]
    return await asyncio.gather(handover.write(refuse), *jobs, return_exceptions=True)


def count(database: Database) -> int:
    with database.read() as tx:
        return tx.value("SELECT count(*) FROM organizations")


def test_each_gets_its_own_answer(database):
    refused, *numbers = asyncio.run(write_all(Handover(database)))
    assert isinstance(refused, ConflictError)
    assert numbers == list(range(COUNT))
    assert count(database) == COUNT


def test_several_loops_share_one(database):
    handover = Handover(database)
    with ThreadPoolExecutor(3) as threads:
        loops = [
            threads.submit(lambda first=n * COUNT: asyncio.run(write_all(handover, first)))
            for n in range(3)
        ]
        found = [number for loop in loops for number in loop.result(60)[1:]]
    assert sorted(found) == list(range(3 * COUNT))


def test_who_is_cancelled_keeps_nobody_waiting(database):
    release = threading.Event()

    async def scenario() -> list[int]:
        handover = Handover(database)
        held = asyncio.create_task(handover.write(lambda tx: release.wait(30)))
        left = asyncio.create_task(handover.write(lambda tx: release.wait(30)))
        stays = asyncio.create_task(handover.write(lambda tx: add(tx, 2)))
        await asyncio.sleep(0.01)
        left.cancel()
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await left
        return [await held, await stays]

    assert asyncio.run(scenario()) == [True, 2]


def test_a_loop_that_is_gone_stops_no_writer(database):
    release = threading.Event()
    handover = Handover(database)

    async def leave() -> None:
        asyncio.ensure_future(handover.write(lambda tx: release.wait(30)))  # noqa: RUF006
        await asyncio.sleep(0.01)

    asyncio.run(leave())
    release.set()
    assert asyncio.run(handover.write(lambda tx: add(tx, 7))) == 7
