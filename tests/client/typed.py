"""What a type checker infers of both clients (`test_typed`). Never run."""

from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import Any, assert_type

from stenograph.client import AsyncClient, Client
from stenograph.client.records import ConversationLine, Event, Frame, OlderPage, Page
from stenograph.client.turn_records import (
    InputReceipt,
    Materialization,
    ReasoningItem,
    Turn,
    TurnPage,
)


def sync(client: Client) -> None:
    home = client.workspace("w")
    talk = home.conversation("c")
    assert_type(home.conversations.list(limit=3), Page[ConversationLine])
    assert_type(talk.turns.list(after_position=3), TurnPage)
    assert_type(talk.turns.each(newest_first=True), Generator[Turn, None, None])
    assert_type(talk.turns.reasoning("t", "v", before=None, limit=5), OlderPage[ReasoningItem])
    assert_type(talk.inputs.create("x", kind="message", idempotency_key="k"), InputReceipt)
    assert_type(talk.inputs.materialization("i"), Materialization | None)
    for event in talk.feed():
        assert_type(event, Event)
    for frame in talk.transcript():
        assert_type(frame, Frame)
    talk.turns.list(limits=3)  # type: ignore[call-arg]
    talk.turns.list(limit="3")  # type: ignore[arg-type]
    talk.turns.reasoning("t")  # type: ignore[call-arg]
    talk.inputs.create("x", knd="message")  # type: ignore[call-arg]


async def on_a_loop(client: AsyncClient) -> None:
    home = client.workspace("w")
    talk = home.conversation("c")
    coming: Coroutine[Any, Any, TurnPage] = talk.turns.list(limit=3)
    assert_type(await coming, TurnPage)
    assert_type(await home.conversations.list(limit=3), Page[ConversationLine])
    assert_type(talk.turns.each(), AsyncGenerator[Turn, None])
    assert_type(await talk.turns.reasoning("t", "v"), OlderPage[ReasoningItem])
    assert_type(await talk.inputs.materialization("i"), Materialization | None)
    async for event in talk.feed():
        assert_type(event, Event)
    async for frame in talk.transcript():
        assert_type(frame, Frame)
    for _ in talk.feed():  # type: ignore[misc]
        pass
    talk.fetch()  # type: ignore[unused-coroutine]
