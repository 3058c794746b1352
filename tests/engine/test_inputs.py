"""What inputs bring to the turns that answer them: steers at once, contexts, files, schedules."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from engine.driving import Driven, scene
from engine.test_turns import SLOW, SLOW_TOOL, candidates
from stenograph.conversations import conversation as conversations
from stenograph.conversations import input as inputs
from stenograph.conversations import input_queue
from stenograph.conversations import workspace as workspaces
from stenograph.conversations.access import Conversation
from stenograph.conversations.attachment import File
from stenograph.conversations.wishes import (
    CallPart,
    Configuration,
    Entry,
    History,
    Passage,
    ReasoningPart,
    ResultPart,
    TextPart,
    Wishes,
)
from stenograph.engine import assembly, history, schedule, serving, start
from stenograph.engine.models.request import Image
from stenograph.engine.models.request import Settings as Asked
from stenograph.engine.summaries import View
from stenograph.errors import ConflictError
from stenograph.retention.integrity import check
from stenograph.runs import request
from stenograph.sessions import conversing
from stenograph.settings import Settings

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture
def plain(driven: Driven) -> Conversation:
    """A conversation that is a session."""

    def make(tx: Any) -> Conversation:
        workspace = workspaces.create(tx, driven.owner, name="w", access_mode="account_wide")
        made = conversations.create(tx, driven.owner, workspace, title=None)
        conversing.begin(tx, driven.owner, made.id)
        return made

    return driven.write(make)


def ask(
    driven: Driven,
    conversation: Conversation,
    text: str | None,
    files: Sequence[File] = (),
    **wishes: Any,
) -> str:
    """Ask, with files too; returns the public id of the input."""

    def act(tx: Any) -> str:
        made = inputs.accept(
            tx,
            driven.owner,
            conversation,
            kind="direct_reply",
            text=text,
            wishes=Wishes(**wishes),
            files=files,
        )
        conversing.catch_up(tx, conversation.id)
        return made.public_id

    return driven.write(act)


def requests(driven: Driven) -> list[request.Request]:
    """Return what was sent, in order."""
    ids = [row[0] for row in driven.rows("SELECT id FROM invocations ORDER BY id")]
    return [driven.read(lambda tx, it=it: request.read(tx, it)) for it in ids]


def told(sent: request.Request) -> list[tuple[str, str]]:
    """Return role and words of what was sent."""
    return [
        (
            entry["role"],
            " | ".join(
                part.get("text", part.get("output", part.get("name", part["type"])))
                for part in entry["parts"]
            ),
        )
        for entry in sent.entries
    ]


def speaking(tx: Any) -> Any:
    return tx.rows("SELECT 1 FROM invocations WHERE status = 'running'")


# --- steering at once ----------------------------------------------------------------------------


def test_what_is_said_at_once_ends_the_call_that_speaks(
    driven: Driven, plain: Conversation
) -> None:
    heard: list[Any] = []
    driven.watch = lambda work, it: heard.append(it)
    driven.ask(plain, SLOW, tool_names=("read",))

    async def act() -> None:
        await driven.until(speaking)
        driven.ask(plain, "Stop: [dev:files]", delivery_mode="steer_now")
        await driven.settled()

    driven.during(act)
    rows = driven.rows(
        "SELECT i.number, i.status, i.llm_call_count, i.id = k.selected_invocation_id, k.key"
        " FROM invocations i JOIN tasks k ON k.id = i.task_id ORDER BY i.id"
    )
    assert [(row[0], row[1], row[2], bool(row[3]), row[4]) for row in rows] == [
        (1, "canceled", 1, False, "r1"), (2, "completed", 1, True, "r1"),
        (1, "completed", 1, True, "r2"),
    ]  # fmt: skip
    # What the call took until then nobody knows; the dev models are free.
    assert driven.rows("SELECT prompt_tokens, cost_usd FROM usage_receipts ORDER BY id")[0] == (
        None, 0.0,
    )  # fmt: skip
    first, again, _ = requests(driven)
    assert told(again) == [*told(first), ("user", "Stop: [dev:files]")]
    [(_, _, status, _, content, _)] = candidates(driven)
    assert (status, content[:9]) == ("completed", "They say:")
    parts = [row[0] for row in driven.rows("SELECT part FROM steps ORDER BY position")]
    assert parts == ["prompt", "steer", "agent", "agent"]
    resets = [getattr(it, "kind", None) for it in heard if isinstance(it, Exception)]
    assert resets == ["interrupted"]
    assert check(driven.database) == []


def test_while_a_tool_works_it_waits_for_the_next_round(
    driven: Driven, plain: Conversation
) -> None:
    driven.ask(plain, "[dev:call glob] [dev:call read]", tool_names=("read", "glob"))
    driven.ask(plain, "Both, please.", delivery_mode="steer")
    assert driven.rows("SELECT state FROM inputs ORDER BY id") == [("consumed",), ("steering",)]
    driven.settle()
    # It came before the run had begun, so that its first round reads it.
    assert told(requests(driven)[0])[-1] == ("user", "Both, please.")
    assert driven.rows("SELECT count(*) FROM invocations") == [(2,)]
    assert check(driven.database) == []


def test_what_came_too_late_is_a_turn_of_its_own(driven: Driven, plain: Conversation) -> None:
    driven.ask(plain, SLOW_TOOL, tool_names=("slow",))

    async def act() -> None:
        await driven.until(
            lambda tx: tx.rows(
                "SELECT 1 FROM tasks WHERE kind = 'tool_task' AND status = 'running'"
            )
        )
        driven.ask(plain, "And then?", delivery_mode="steer_now")
        turn_id = candidates(driven)[0][0]
        driven.write(lambda tx: start.cancel(tx, plain, turn_id))
        await driven.settled()

    driven.during(act)
    assert [it[2] for it in candidates(driven)] == ["canceled", "completed"]
    assert candidates(driven)[1][4] == "You said: And then?"
    assert driven.rows("SELECT part FROM steps WHERE part = 'steer'") == []
    assert check(driven.database) == []


def test_an_answer_that_is_made_anew_is_not_steered(driven: Driven, plain: Conversation) -> None:
    driven.ask(plain, SLOW, tool_names=("read",))
    driven.settle()
    turn_id = candidates(driven)[0][0]
    driven.write(lambda tx: start.regenerate(tx, driven.owner, plain, turn_id))

    async def act() -> None:
        await driven.until(speaking)
        driven.ask(plain, SLOW, tool_names=("read",))
        driven.ask(plain, "now", delivery_mode="steer_now")
        await driven.settled()

    driven.during(act)
    old, new, other = candidates(driven)
    assert (old[3], new[3], other[3]) == ("completed", "completed", "completed")
    canceled = driven.rows(
        "SELECT t.public_id FROM invocations i JOIN tasks k ON k.id = i.task_id"
        " JOIN runs r ON r.id = k.run_id JOIN variants v ON v.id = r.variant_id"
        " JOIN turns t ON t.id = v.turn_id WHERE i.status = 'canceled'"
    )
    assert {row[0] for row in canceled} <= {other[0]}
    steered = driven.rows(
        "SELECT t.public_id FROM steps s JOIN turns t ON t.id = s.turn_id WHERE s.part = 'steer'"
    )
    assert steered == [(other[0],)]


# --- contexts ------------------------------------------------------------------------------------


def test_a_raw_context_is_told_alone(driven: Driven, plain: Conversation) -> None:
    driven.ask(plain, "before", tool_names=("read",))
    driven.settle()
    entries = (
        Entry("system", "Never {{mood}}."),
        Entry("user", "List them."),
        Entry("assistant", parts=(ReasoningPart("I look."), CallPart("c", "glob", "{}"))),
        Entry("tool", parts=(ResultPart("c", "glob", "a.txt"),)),
        Entry("assistant", "One file."),
        Entry("user", parts=(TextPart("Read {{mood}}: [dev:call read]"),)),
    )
    raw = {"context_mode": "raw", "entries": entries, "variables": {"mood": "slow"}}
    ask(driven, plain, None, instructions="Be {{mood}}.", tool_names=("read",), **raw)
    driven.settle()
    alone = [
        ("system", "Be slow."), ("system", "Never slow."), ("user", "List them."),
        ("assistant", "I look. | glob"), ("tool", "a.txt"), ("assistant", "One file."),
        ("user", "Read slow: [dev:call read]"),
    ]  # fmt: skip
    _, first, second = requests(driven)
    assert told(first) == alone
    assert told(second)[: len(alone)] == alone
    assert len(second.entries) == len(alone) + 2
    # Later turns are told what was asked last, and what came of it.
    driven.ask(plain, "after")
    driven.settle()
    assert [it for it in told(requests(driven)[-1]) if it[0] == "user"] == [
        ("user", "before"), ("user", "Read slow: [dev:call read]"), ("user", "after"),
    ]  # fmt: skip
    assert check(driven.database) == []


def test_a_raw_text_is_one_entry(driven: Driven, plain: Conversation) -> None:
    driven.ask(plain, "before")
    ask(driven, plain, "alone", context_mode="raw")
    driven.settle()
    assert told(requests(driven)[-1]) == [("user", "alone")]
    assert candidates(driven)[-1][4] == "You said: alone"


def test_history_is_limited_from_the_newest_back(driven: Driven, plain: Conversation) -> None:
    for number in range(4):
        driven.ask(plain, f"question {number}")
    driven.settle()
    ask(driven, plain, "two messages", history=History(max_entries=3))
    driven.settle()
    users = [it[1] for it in told(requests(driven)[-1]) if it[0] == "user"]
    assert users == ["question 3", "two messages"]
    ask(driven, plain, "none", history=History(max_entries=0))
    driven.settle()
    assert told(requests(driven)[-1]) == [("user", "none")]
    ask(driven, plain, "no room", history=History(token_budget_share=0.0))
    driven.settle()
    assert told(requests(driven)[-1]) == [("user", "no room")]
    ask(driven, plain, "all of it", history=History(max_entries=200, token_budget_share=1.0))
    driven.settle()
    assert len(requests(driven)[-1].entries) == 15
    trimmed = driven.rows("SELECT payload FROM events WHERE type = 'context_trimmed' ORDER BY id")
    assert [msgspec.json.decode(row[0])["left_out"] for row in trimmed] == [3, 5, 6]


def test_passages_are_read_with_one_input(driven: Driven, plain: Conversation) -> None:
    passages = (Passage("Rain on {{day}}.", "Weather"), Passage("No title."))
    ask(driven, plain, "And {{day}}?", inline=passages, variables={"day": "Monday"})
    driven.settle()
    [(role, read), asked] = told(requests(driven)[-1])
    assert (role, asked) == ("user", ("user", "And Monday?"))
    assert '<passage title="Weather">\nRain on Monday.\n</passage>' in read
    assert "<passage>\nNo title.\n</passage>" in read
    driven.ask(plain, "Next")
    driven.settle()
    assert [it[0] for it in told(requests(driven)[-1])] == ["user", "assistant", "user"]


def test_reasoning_is_replayed_as_wished(driven: Driven, plain: Conversation) -> None:
    think = scene('[[round]]\nthink = "Hm."\nsay = "So."\n')
    for _ in range(2):
        driven.ask(plain, think, tool_names=())
    driven.settle()

    def replayed(mode: Any) -> list[bool]:
        ask(driven, plain, "x", reasoning_replay=mode, tool_names=(), model="dev/small")
        driven.settle()
        assistants = [it for it in requests(driven)[-1].entries if it["role"] == "assistant"]
        return [any(p["type"] == "reasoning" for p in it["parts"]) for it in assistants]

    assert replayed("none") == [False, False]
    assert replayed("all")[:2] == [True, True]
    assert replayed(None)[:2] == [True, True]
    driven.ask(plain, think, tool_names=())
    driven.settle()
    assert replayed("last_turn") == [False] * 5 + [True]


def test_a_configuration_reaches_the_provider_and_the_seal(
    driven: Driven, plain: Conversation
) -> None:
    wanted = Configuration(max_tokens=50, temperature=0.5, parallel_tool_calls=False)
    ask(driven, plain, "x", configuration=wanted)
    driven.settle()
    (sent,) = requests(driven)
    assert sent.request_options["max_tokens"] == 50
    assert sent.request_options["temperature"] == 0.5
    assert sent.request_options["parallel_tool_calls"] is False
    [(response,)] = driven.rows("SELECT response FROM invocation_details")
    assert response
    given = assembly.settings(Wishes(configuration=wanted), Asked(reasoning_effort="low"))
    assert (given.max_tokens, given.temperature, given.parallel_tool_calls) == (50, 0.5, False)
    assert given.reasoning_effort == "low"


# --- files ---------------------------------------------------------------------------------------


def test_files_reach_the_model(driven: Driven, plain: Conversation) -> None:
    files = [
        File("p.png", "image/png", PNG),
        File("notes.txt", "text/plain", "Grüße".encode()),
        File("z.bin", "application/zip", b"PK\0"),
    ]
    ask(driven, plain, "Look", files=files, tool_names=())
    driven.settle()
    (entry,) = requests(driven)[0].entries
    assert [part["type"] for part in entry["parts"]] == ["text", "image", "text", "text"]
    assert entry["parts"][1]["media_type"] == "image/png"
    assert 'filename="notes.txt"' in entry["parts"][2]["text"]
    assert "\nGrüße\n" in entry["parts"][2]["text"]
    assert "3 bytes" in entry["parts"][3]["text"]

    def look(tx: Any) -> Any:
        return history.flat(history.units(tx, View(plain, 9, 0, "And now?", None), 2**62))

    message = driven.read(look)[0]
    assert message.parts[1] == Image("image/png", PNG)
    [(listed,)] = driven.rows("SELECT attachments FROM messages WHERE kind = 'prompt'")
    assert [it["filename"] for it in msgspec.json.decode(listed)] == ["p.png", "notes.txt", "z.bin"]
    assert check(driven.database) == []


def test_files_that_steer_are_read_where_they_came(driven: Driven, plain: Conversation) -> None:
    ask(driven, plain, "First", files=[File("a", "text/plain", b"aaa")], tool_names=("read",))
    steer = [File("b", "text/plain", b"bbb")]
    ask(driven, plain, "Second", files=steer, delivery_mode="steer", tool_names=("read",))
    driven.settle()
    first, second = (entry["parts"] for entry in requests(driven)[0].entries)
    assert (first[0]["text"], "\naaa\n" in first[1]["text"], len(first)) == ("First", True, 2)
    assert (second[0]["text"], "\nbbb\n" in second[1]["text"], len(second)) == ("Second", True, 2)
    driven.ask(plain, "Third", tool_names=())
    driven.settle()
    assert requests(driven)[1].entries[:2] == requests(driven)[0].entries
    assert check(driven.database) == []


# --- schedules -----------------------------------------------------------------------------------


def test_a_server_delivers_what_fell_due_while_nobody_looked(
    driven: Driven, plain: Conversation, sealer: Any, tmp_path: Any
) -> None:
    later = inputs.now() + 3_600_000_000
    first = ask(driven, plain, "first", deliver_at=later)
    ask(driven, plain, "second", deliver_at=later)
    driven.settle()
    assert candidates(driven) == []
    # An hour passes.
    driven.write(lambda tx: tx.run("UPDATE inputs SET deliver_at = 1"))

    async def serve() -> None:
        settings = Settings(data=tmp_path)
        async with (
            asyncio.timeout(30),
            serving.running(driven.database, settings, sealer, {}, driven.place),
        ):
            await driven.until(
                lambda tx: tx.value("SELECT count(*) FROM variants WHERE status = 'completed'") == 2
            )

    asyncio.run(serve())
    assert [it[4] for it in candidates(driven)] == ["You said: first", "You said: second"]
    became = driven.read(lambda tx: inputs.materialization(tx, plain, first))
    assert became.turn == candidates(driven)[0][0]


def test_a_scheduled_steer_goes_into_what_runs_then(driven: Driven, plain: Conversation) -> None:
    later = inputs.now() + 3_600_000_000
    ask(driven, plain, "[dev:files]", delivery_mode="steer_now", deliver_at=later)
    driven.ask(plain, SLOW, tool_names=("read",))

    async def act() -> None:
        await driven.until(speaking)
        driven.write(lambda tx: tx.run("UPDATE inputs SET deliver_at = 1 WHERE state = 'pending'"))
        assert await schedule.deliver(driven.desk()) == 1
        assert await schedule.deliver(driven.desk()) == 0
        await driven.settled()

    driven.during(act)
    assert driven.rows("SELECT text FROM steps WHERE part = 'steer'") == [("[dev:files]",)]
    assert len(candidates(driven)) == 1


def test_an_archive_keeps_what_is_due(driven: Driven, plain: Conversation) -> None:
    ask(driven, plain, "x", deliver_at=inputs.now() + 3_600_000_000)
    driven.write(lambda tx: tx.run("UPDATE inputs SET deliver_at = 1"))
    driven.write(lambda tx: tx.run("UPDATE conversations SET archived_at = 1"))
    assert asyncio.run(schedule.deliver(driven.desk())) == 0
    driven.write(lambda tx: tx.run("UPDATE conversations SET archived_at = NULL"))
    assert asyncio.run(schedule.deliver(driven.desk())) == 1
    assert [it[2] for it in candidates(driven)] == ["pending"]


def test_who_runs_out_of_room_hears_so(driven: Driven, plain: Conversation) -> None:
    driven.ask(plain, "[dev:slow] x", tool_names=("read",))
    for _ in range(inputs.LIMIT):
        driven.ask(plain, "again")
    with pytest.raises(ConflictError) as refused:
        driven.ask(plain, "once more")
    assert refused.value.code == "input_queue_full"
    assert driven.write(lambda tx: input_queue.advance(tx, plain.id)) == []
