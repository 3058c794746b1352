"""The hub: in order, only to who watches, bounded for each reader, and nothing left behind."""

import asyncio
import threading

import pytest

from stenograph.events import live, waiting
from stenograph.events.live import Committed, CutError, Frame, Subscription


def frame(text="x", topic="transcript"):
    return Frame(topic, "text_delta", {"text": text}, 1, 2)


async def drained(ear):
    found = []
    while (item := await ear.next(0.01)) is not None:
        found.append(item)
    return found


def test_frames_and_commits_come_in_the_order_in_which_they_were_told():
    async def act():
        with Subscription(7, {"transcript"}) as ear, Subscription(7) as plain:
            live.publish(7, frame("a"))
            waiting.announce(7, 3)
            waiting.announce(7, 4)
            live.publish(7, frame("b"))
            waiting.announce(7)
            live.publish(8, frame("elsewhere"))
            live.publish(7, frame("other", "progress"))
            return await drained(ear), await drained(plain)

    heard, plain = asyncio.run(act())
    assert heard == [frame("a"), Committed(4), frame("b"), Committed(None)]
    assert plain == [Committed(4)]


def test_a_commit_that_comes_late_moves_nothing_back():
    """Two writers may tell of their commits in the other order."""

    async def act():
        with Subscription(7) as ear:
            waiting.announce(7, 5)
            waiting.announce(7, 4)
            return await drained(ear)

    assert asyncio.run(act()) == [Committed(5)]


def test_topics_are_told_to_who_asked_for_them():
    async def act():
        with Subscription(7, {"progress"}) as ear:
            assert live.is_watched(7, "progress")
            assert not live.is_watched(7, "transcript")
            live.publish(7, frame())
            live.publish(7, frame("p", "progress"))
            return await drained(ear)

    assert asyncio.run(act()) == [frame("p", "progress")]
    assert not live.is_watched(7, "progress")


@pytest.mark.parametrize("size", [1, live.CHARACTERS // 3])
def test_who_does_not_keep_up_is_cut_and_holds_no_memory(size):
    async def act():
        with Subscription(7, {"transcript"}) as slow, Subscription(7, {"transcript"}) as quick:
            told = 0
            while not slow._cut:
                live.publish(7, frame("y" * size))
                assert await quick.next(1) is not None
                told += 1
            waiting.announce(7, 1)
            live.publish(7, frame())
            assert not slow._queue
            with pytest.raises(CutError):
                await slow.next(1)
            assert await drained(quick) == [Committed(1), frame()]
            return told

    told = asyncio.run(act())
    assert told <= live.FRAMES + 1
    assert told * size <= live.CHARACTERS + size or size == 1


def test_nothing_is_left_behind():
    async def act():
        for _ in range(3):
            with pytest.raises(KeyError), Subscription(9, {"transcript"}):
                raise KeyError
        before = asyncio.all_tasks()
        with Subscription(9, {"transcript"}) as ear:
            waiter = asyncio.create_task(ear.next(60))
            await asyncio.sleep(0)
            waiter.cancel()
            await asyncio.gather(waiter, return_exceptions=True)
        assert asyncio.all_tasks() == before

    asyncio.run(act())
    assert 9 not in live._subscriptions
    assert 9 not in waiting._listening


def test_other_threads_may_tell():
    async def act():
        with Subscription(7, {"transcript"}) as ear:
            threads = [
                threading.Thread(target=lambda: [live.publish(7, frame()) for _ in range(50)])
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            found = [await ear.next(5) for _ in range(200)]
            for thread in threads:
                thread.join()
            return found

    assert asyncio.run(act()) == [frame()] * 200


def test_telling_after_a_readers_loop_has_ended_is_no_fault():
    loop = asyncio.new_event_loop()

    async def make():
        return Subscription(7, {"transcript"})

    ear = loop.run_until_complete(make())
    loop.close()
    with ear:
        live.publish(7, frame())
        waiting.announce(7, 1)
