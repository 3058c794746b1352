"""What is told live of a model call: its deltas in order, masked, and only to who may see them."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from engine.driving import Driven, scene
from stenograph.engine import rounds, store, watching
from stenograph.engine.models.answer import (
    ReasoningDelta,
    Response,
    TextDelta,
    ToolCallArgumentsDelta,
    ToolCallStarted,
    Usage,
)
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.work import Work, load
from stenograph.events import live
from stenograph.events.live import Committed, Frame, Subscription
from stenograph.sessions import secret, session
from stenograph.storage.sealing import Sealer

TOKEN = "quokka7zebra"
TALK = scene(
    """
[[round]]
think = "I look first, and then I say what there is."
say = "It is here."
call = [{ tool = "read", arguments = { path = "README.md" } }]
pause_ms = 50
[[round]]
say = "That was all there is to say about it."
pause_ms = 50
"""
)


@pytest.fixture
def sealer() -> Sealer:
    return Sealer(os.urandom(32))


def give(driven: Driven, sealer: Sealer, session_id: str, value: str) -> None:
    """Let a session have a secret."""

    def act(tx: Any) -> None:
        secret.create(tx, driven.owner, sealer, "TOKEN", value)
        found = session.find(tx, driven.owner, session_id)
        secret.give(tx, found.id, secret.take(tx, driven.owner, sealer, ["TOKEN"]))

    driven.write(act)


def work_of(driven: Driven) -> Work:
    def look(tx: Any) -> Work:
        found = load(tx, store.unsettled(tx)[0])
        assert found is not None
        return found

    return driven.read(look)


def response() -> Response:
    return Response("dev", "x", "", "", None, (), Usage(), None, "stop", "", "")


def told(
    driven: Driven, sealer: Sealer, heard: list[Any], *, unwatched: list[Any] = (), **more: Any
) -> list[Frame]:
    """The frames of one model call: who watches comes after `unwatched`."""
    work = work_of(driven)
    hear = watching.watch(driven.database, sealer)

    async def act() -> list[Frame]:
        for it in unwatched:
            hear(work, it)
        with Subscription(work.conversation.id, {"transcript"}) as ear:
            for it in heard:
                hear(work, it)
                # Where the database is somewhere else, a look at it takes a moment.
                await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
            frames = []
            while (frame := await ear.next(0.01)) is not None:
                assert isinstance(frame, Frame)
                frames.append(frame)
            return frames

    return asyncio.run(act())


def said(frames: list[Frame], kind: str) -> str:
    return "".join(frame.data["text"] for frame in frames if frame.type == kind)


async def listen(driven: Driven, topics: set[live.Topic]) -> list[Any]:
    """All that a watcher of the only conversation hears until its work is done."""
    heard: list[Any] = []
    (conversation_id,) = driven.rows("SELECT id FROM conversations")[0]
    with Subscription(conversation_id, topics) as ear:
        while driven.read(store.unsettled) or ear._queue:
            item = await ear.next(0.05)
            if item is not None:
                heard.append(item)
    return heard


def test_who_watches_a_run_hears_it_in_order(driven: Driven, sealer: Sealer) -> None:
    driven.watch = watching.watch(driven.database, sealer)
    driven.open(TALK, model="dev/thinker", reasoning_effort="high")
    heard: list[Any] = []

    async def act() -> None:
        heard.extend(await listen(driven, {"transcript"}))

    driven.during(act)
    frames = [it for it in heard if isinstance(it, Frame)]
    first = [it for it in frames if it.data["task_key"] == "r1"]
    second = [it for it in frames if it.data["task_key"] == "r2"]
    assert frames == first + second
    assert said(first, "reasoning_delta") == "I look first, and then I say what there is."
    assert {it.data["kind"] for it in first if it.type == "reasoning_delta"} == {"text"}
    assert said(first, "text_delta") == "It is here."
    assert said(second, "text_delta") == "That was all there is to say about it."
    (started,) = [it for it in frames if it.type == "tool_call_started"]
    assert (started.data["index"], started.data["name"]) == (0, "read")
    assert said(frames, "tool_call_arguments_delta") == '{"path": "README.md"}'
    turn, variant, run = driven.rows(
        "SELECT t.public_id, v.public_id, r.public_id FROM turns t"
        " JOIN variants v ON v.turn_id = t.id JOIN runs r ON r.variant_id = v.id"
    )[0]
    for frame in frames:
        named = {n: frame.data[n] for n in ("turn_public_id", "variant_public_id", "run_public_id")}
        assert list(named.values()) == [turn, variant, run]
    # What is committed comes in between, behind the deltas of the round that it settles.
    settled = driven.rows("SELECT sequence FROM events WHERE type = 'round_result'")[0][0]
    after = next(
        at for at, it in enumerate(heard)
        if isinstance(it, Committed) and (it.sequence or 0) >= settled
    )  # fmt: skip
    assert max(heard.index(it) for it in first) < after < min(heard.index(it) for it in second)


def test_who_comes_in_the_middle_hears_the_rest(driven: Driven, sealer: Sealer) -> None:
    driven.open("x")
    before = [TextDelta("One, "), TextDelta("two, ")]
    frames = told(driven, sealer, [TextDelta("three."), response()], unwatched=before)
    assert said(frames, "text_delta") == "three."


@pytest.mark.parametrize("cut", [1, 6, 11])
def test_no_part_of_a_secret_is_told_wherever_it_is_cut(
    driven: Driven, sealer: Sealer, cut: int
) -> None:
    session_id = driven.open("x")
    give(driven, sealer, session_id, TOKEN)
    start, rest = TOKEN[:cut], TOKEN[cut:]
    heard = [TextDelta(f"It is {start}"), TextDelta(f"{rest}!"), response()]
    assert said(told(driven, sealer, heard), "text_delta") == "It is [redacted-secret]!"
    late = told(driven, sealer, [TextDelta(f"{rest}!"), response()], unwatched=[TextDelta(start)])
    assert said(late, "text_delta") == "[redacted-secret]!"


def test_every_place_of_a_call_is_masked(driven: Driven, sealer: Sealer) -> None:
    session_id = driven.open("x")
    give(driven, sealer, session_id, TOKEN)
    heard = [
        ReasoningDelta(TOKEN[:5]),
        TextDelta("quok"),
        ReasoningDelta(TOKEN[5:]),
        ToolCallStarted(0, f"call-{TOKEN}", f"say_{TOKEN}"),
        ToolCallArgumentsDelta(0, '{"a": "quokka'),
        ToolCallStarted(1, "call-2", "say"),
        ToolCallArgumentsDelta(1, "zebra"),
        ToolCallArgumentsDelta(0, '7zebra"}'),
        response(),
    ]
    frames = told(driven, sealer, heard)
    assert TOKEN not in str(frames)
    assert said(frames, "reasoning_delta") == "[redacted-secret]"
    # What only began like one is told in the end.
    assert said(frames, "text_delta") == "quok"
    arguments = [it for it in frames if it.type == "tool_call_arguments_delta"]
    assert said([it for it in arguments if it.data["index"] == 0], "tool_call_arguments_delta") == (
        '{"a": "[redacted-secret]"}'
    )
    assert said([it for it in arguments if it.data["index"] == 1], "tool_call_arguments_delta") == (
        "zebra"
    )
    names = [it.data["name"] for it in frames if it.type == "tool_call_started"]
    assert names == ["say_[redacted-secret]", "say"]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (ModelFailedError("overloaded", "later"), "retry"),
        (ModelFailedError("refused", "no"), "refused"),
        (None, "failed"),
    ],
)
def test_what_counts_no_more_is_taken_back(
    driven: Driven, sealer: Sealer, end: Any, reason: str
) -> None:
    session_id = driven.open("x")
    give(driven, sealer, session_id, TOKEN)
    heard = [TextDelta("Half of quok"), end, TextDelta("The whole"), response()]
    frames = told(driven, sealer, heard)
    kinds = [(it.type, it.data.get("text"), it.data.get("reason")) for it in frames]
    reset = kinds.index(("stream_reset", None, reason))
    # What was held back of the lost half is not told as a part of the other.
    assert "".join(text for _, text, _ in kinds[:reset] if text) == "Half of "
    assert "".join(text for _, text, _ in kinds[reset + 1 :] if text) == "The whole"


def test_nobody_hears_a_hidden_task(driven: Driven, sealer: Sealer) -> None:
    driven.open("x")
    candidate = work_of(driven).candidate
    driven.write(lambda tx: rounds.begin(tx, driven.rules, candidate))
    heard = [TextDelta("I look."), response()]
    assert [it.data["task_key"] for it in told(driven, sealer, heard)] == ["r1"]
    driven.write(lambda tx: tx.run("UPDATE tasks SET transcript_visibility = 'hidden'"))
    assert told(driven, sealer, heard) == []


def test_a_fault_of_the_telling_is_none_of_the_turn(
    driven: Driven, sealer: Sealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Callable[..., Any]:
        raise RuntimeError("no")

    monkeypatch.setattr(watching.secret, "values", broken)
    driven.watch = watching.watch(driven.database, sealer)
    driven.open("hello")

    async def act() -> None:
        await listen(driven, {"transcript"})

    driven.during(act)
    assert driven.rows("SELECT status FROM turns") == [("completed",)]
