"""The whole surface against a server with its engine: each method once, each route by a method."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from cli.test_serve import Server
from client.awaited import WAYS, Awaited, use
from http_routes import every_route
from stenograph.client import (
    Conflict,
    InvalidRequest,
    NotFound,
    conversation,
    conversations,
    inputs,
    runs,
    turns,
    workspaces,
)
from stenograph.client.surface import Resource, iteration, operation

MODULES = (conversation, conversations, inputs, runs, turns, workspaces)
THOUGHT = """```dev-scene
[[round]]
think = "First I reckon."
call = [
  { tool = "spawn", arguments = { prompt = "Reckon." } },
  { tool = "spawn", arguments = { prompt = "Reckon too." } },
]
[[round]]
think = "Now I know."
say = "It is 42."
```"""


WAITING = """```dev-scene
[[round]]
call = [{ tool = "spawn", arguments = { prompt = "Wait." } }]
```"""
FAILING = """```dev-scene
[[round]]
fail = { kind = "invalid_request" }
```"""


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    options = []
    if request.param == "postgres":
        options = ["--database", request.getfixturevalue("empty_postgres")().url]
    started = Server(tmp_path_factory.mktemp("served") / "data", *options)
    yield started
    assert started.stop()[0] == 0


def surface() -> set[str]:
    """Every method that asks the server, by class."""
    return {
        f"{kind.__name__}.{name}"
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Resource) and kind is not Resource
        for name, it in vars(kind).items()
        if isinstance(it, operation | iteration)
    }


def served() -> dict[str, re.Pattern[str]]:
    """Every route for members, by `METHOD pattern`."""
    return {
        f"{route.method} {route.path}": re.compile(
            f"{route.method} {prefix}" + re.sub(r"\{\w+\}", "[^/]+", route.path)
        )
        for family, prefix, route in every_route()
        if family == "agent" and route.plane == "member"
    }


async def listed(given: Any) -> list[Any]:
    return [item async for item in given]


async def settled(talk: Any, cursor: str) -> None:
    """Follow the feed until there is an answer, or none."""
    async for event in talk.feed(cursor):
        if event.payload.get("variant_status") in ("completed", "failed"):
            return


async def answered(talk: Any, text: str, **more: Any) -> Any:
    """Ask, and return the turn when it has its end."""
    cursor = (await talk.fetch()).latest_event_cursor
    sent = await talk.inputs.create(text, **more)
    await settled(talk, cursor)
    became = await talk.inputs.materialization(sent.input.public_id)
    return await talk.turns.fetch(became.turn_public_id)


# --- chapters ----------------------------------------------------------------------------------


async def in_workspaces(client: Any) -> str:
    made = await client.workspaces.create("Home", metadata={"n": None})
    again = await client.workspaces.create(
        "Home", metadata={"n": None}, idempotency_key=made.idempotency_key
    )
    home = made.workspace
    assert (again.workspace, made.replayed, again.replayed) == (home, False, True)
    assert home.metadata == {"n": None}
    assert home == await client.workspaces.fetch(home.public_id)
    other = (await client.workspaces.create("Other")).workspace
    page = await client.workspaces.list(limit=1, order="desc")
    assert (page.items[0].name, len(page.items)) == ("Other", 1)
    rest = await client.workspaces.list(limit=1, order="desc", after=page.next_after)
    assert rest.items[0].public_id == home.public_id
    names = [it.name for it in await listed(client.workspaces.each())]
    assert names[-2:] == ["Home", "Other"]
    (person,) = await client.workspaces.principals(home.public_id)
    assert person.public_id == home.owner.public_id
    changed = await client.workspaces.update(other.public_id, other.lock_version, name="Bin")
    with pytest.raises(Conflict) as refused:
        await client.workspaces.update(other.public_id, other.lock_version, name="Late")
    assert refused.value.code == "stale_object"
    archived = await client.workspaces.archive(other.public_id, changed.lock_version)
    opened = await client.workspaces.restore(other.public_id, archived.lock_version)
    assert (archived.state, opened.state) == ("archived", "active")
    assert await client.workspaces.delete(other.public_id, opened.lock_version) is None
    with pytest.raises(NotFound):
        await client.workspaces.fetch(other.public_id)
    return str(home.public_id)


async def in_conversations(home: Any) -> Any:
    about = {"title": "Quail", "metadata": {"a": 1}, "access": {"default": "read"}}
    made = await home.conversations.create(**about)
    again = await home.conversations.create(**about, idempotency_key=made.idempotency_key)
    found = made.conversation
    assert (again.replayed, again.conversation.public_id) == (True, found.public_id)
    assert (found.access.default, made.runner_effects) == ("read", None)
    assert await home.conversations.fetch(found.public_id) == found
    talk = home.conversation(found.public_id)
    assert await talk.fetch() == found
    changed = await talk.update(title=None)
    assert (changed.title, changed.metadata) == (None, {"a": 1})
    assert (await talk.update(title="Quail", metadata={})).metadata == {}
    assert (await talk.set_access(default="full")).access.default == "full"
    assert (await talk.set_default_runner(None)).default_runner is None
    assert (await talk.archive()).archived_at is not None
    archived = await home.conversations.archived()
    assert [it.public_id for it in archived.items] == [found.public_id]
    assert list(archived.items) == await listed(home.conversations.iter_archived())
    assert (await talk.unarchive()).archived_at is None
    spare = await home.conversations.create(title="Spare")
    page = await home.conversations.list(limit=1, order="desc", order_by="public_id")
    everyone = await listed(home.conversations.each(order="desc"))
    assert [it.title for it in everyone] == ["Spare", "Quail"]
    assert page.items[0] == everyone[0]
    assert await home.conversation(spare.conversation.public_id).delete() is None
    return talk


async def in_inputs(talk: Any) -> None:
    file = {"filename": "a.bin", "content_type": "application/octet-stream", "data": "AP8="}
    later = [
        await talk.inputs.create(f"later {n}", deliver_in=9_999, attachments=files)
        for n, files in enumerate(([file], None))
    ]
    first, second = (it.input.public_id for it in later)
    assert (later[0].replayed, later[0].input.state) == (False, "pending")
    assert await talk.inputs.materialization(first) is None
    attached = later[0].input.attachments[0]
    assert (attached.filename, attached.byte_size) == ("a.bin", 2)
    assert await talk.attachment(attached.public_id) == b"\x00\xff"
    ordered = await talk.inputs.reorder([second, first])
    assert [it.public_id for it in ordered.items] == [second, first]
    changed = await talk.inputs.update(second, text="sooner", expected_lock_version=0)
    assert (changed.text, changed.lock_version) == ("sooner", 1)
    assert (await talk.inputs.list()).items[0] == changed
    for one in (first, second):
        assert await talk.inputs.delete(one) is None
    left = await talk.inputs.list()
    assert (left.items, left.input_queue.held) == ((), False)


async def in_turns(talk: Any) -> None:
    said = await answered(talk, "What is a quail?", model={"model": "dev/thinker"})
    active = said.active_variant
    assert (said.status, active.content) == ("completed", "You said: What is a quail?")
    (thought,) = (await talk.turns.reasoning(said.public_id, active.public_id)).items
    assert (thought.available, thought.task_key) == (True, None)
    assert thought.model.provider_id == "dev"
    (entry, *_) = (await talk.turns.request(said.public_id, active.public_id)).entries
    assert entry["role"] in ("system", "user")
    deck = await talk.turns.variants(said.public_id)
    assert (deck.active.public_id, deck.turn.inherited) == (active.public_id, False)
    await talk.turns.activate(said.public_id, active.public_id)
    with pytest.raises(Conflict) as refused:
        await talk.turns.set_variant_view_state(said.public_id, active.public_id, concealed=True)
    assert refused.value.code == "variant_active"
    for n in range(3):
        await talk.inputs.create(f"note {n}", kind="message")
    hidden = (await talk.turns.list(before_position=9, limit=1)).items[0]
    assert (
        await talk.turns.set_view_state(hidden.public_id, visibility="hidden")
    ).inherited is False
    page = await talk.turns.list(after_position=said.position, limit=1)
    assert (page.before_position, page.after_position) == (1, 1)
    with pytest.raises(ValueError, match="not both"):
        await talk.turns.list(after_position=0, before_position=2)
    oldest = [it.position for it in await listed(talk.turns.each())]
    newest = [it.position async for it in talk.turns.each(newest_first=True, include_hidden=True)]
    assert (oldest, newest) == ([0, 1, 2], [3, 2, 1, 0])


async def in_decks(talk: Any) -> None:
    said = await answered(talk, "Once more?", model={"model": "dev/thinker"})
    cursor = (await talk.fetch()).latest_event_cursor
    anew = await talk.turns.regenerate(said.public_id, idempotency_key="g")
    assert (anew.turn_public_id, anew.replayed) == (said.public_id, False)
    await settled(talk, cursor)
    receipt = await talk.turns.regeneration_receipt("g")
    assert receipt.variant.public_id == anew.variant.public_id
    edited = await talk.turns.edit(said.public_id, text="It is small.")
    assert (edited.source, edited.content) == ("edit", "It is small.")
    assert await talk.turns.delete(said.public_id) is None


async def in_runs(home: Any, talk: Any) -> None:
    cursor = (await talk.fetch()).latest_event_cursor
    sent = await talk.inputs.create(THOUGHT, tool_names=["spawn"], approval_mode="ask")
    decided = set()
    async for event in talk.feed(cursor):
        if event.type == "attention_required":
            run, key = event.payload["run_public_id"], event.payload["task_key"]
            attention = (await home.runs.fetch(run)).attention
            assert (attention.reason, key in attention.task_keys) == ("approval", True)
            if key == "r2t0":
                assert (await home.runs.approve(run, key)).decision == "approve"
            else:
                denied = await home.runs.deny(run, key, note="Not that")
                assert (denied.decision, denied.note) == ("deny", "Not that")
            decided.add(key)
        if event.payload.get("variant_status") == "completed":
            break
    assert decided == {"r2t0", "r2t1"}
    became = await talk.inputs.materialization(sent.input.public_id)
    turn_id, variant_id, run_id = (
        became.turn_public_id, became.variant_public_id, became.run_public_id,
    )  # fmt: skip
    rounds = await home.runs.transcript(run_id, limit=1)
    assert (rounds.items[0].task_key, rounds.has_older) == ("r2", True)
    older = await home.runs.transcript(run_id, before=rounds.next_before)
    assert [it.name for it in older.items[0].calls.items] == ["spawn", "spawn"]
    keys = [it.task_key async for it in home.runs.iter_transcript(run_id)]
    back = [it.task_key async for it in home.runs.iter_transcript(run_id, newest_first=True)]
    assert (keys, back) == (["r1", "r2"], ["r2", "r1"])
    task = await home.runs.task(run_id, "r2t0")
    assert (task.input["prompt"], task.round_task_key) == ("Reckon.", "r1")
    assert (await home.runs.task_request(run_id, "r1")).entries
    graph = await home.runs.graph(run_id)
    lies = {(it.source, it.target) for it in graph.edges if it.structural}
    assert (lies, graph.mermaid[:9]) == ({("r1", "r2t0"), ("r1", "r2t1")}, "flowchart")
    phases = await home.runs.phases(run_id)
    assert [it.step for it in phases.phases] == ["settled", "settled"]
    assert phases.spend.request_count == 2
    page = await talk.turns.reasoning(turn_id, variant_id, limit=1)
    assert (page.items[0].text, page.has_older) == ("Now I know.", True)
    texts = [it.text async for it in talk.turns.iter_reasoning(turn_id, variant_id)]
    assert texts == ["First I reckon.", "Now I know."]
    back = [it async for it in talk.turns.iter_reasoning(turn_id, variant_id, newest_first=True)]
    assert [it.text for it in back] == texts[::-1]


async def in_failed_runs(home: Any, talk: Any) -> None:
    said = await answered(talk, FAILING, tool_names=[])
    run = said.active_variant.run_public_id
    assert (await home.runs.fetch(run)).turn.status == "failed"
    for again in (lambda: home.runs.retry(run), lambda: home.runs.retry_task(run, "r1")):
        cursor = (await talk.fetch()).latest_event_cursor
        assert (await again()).public_id == run
        await settled(talk, cursor)
    with pytest.raises(Conflict) as refused:
        await home.runs.cancel(run)
    assert refused.value.code == "run_settled"
    for text, stop in ((WAITING, home.runs.abandon), ("[dev:slow]", home.runs.cancel)):
        cursor = (await talk.fetch()).latest_event_cursor
        await talk.inputs.create(text, tool_names=["spawn"], approval_mode="ask")
        word = "attention_required" if text == WAITING else "task_status"
        async for event in talk.feed(cursor):
            if event.type == word:
                break
        stopped = await stop(event.payload["run_public_id"])
        assert stopped.turn.status == ("failed" if text == WAITING else "canceled")


async def around_them(home: Any, talk: Any) -> None:
    found = await home.conversations.search("quail", limit=1)
    assert len(found.items) == 1
    fields = {it.field async for it in home.conversations.iter_search("quail")}
    assert fields >= {"title", "prompt"}
    history = await talk.history(limit=2)
    assert (len(history.items), history.has_older, history.conversation["title"]) == (
        2,
        True,
        "Quail",
    )
    assert len(await listed(talk.iter_history())) > 2
    estimate = await talk.estimate_input("And then?", model="dev/thinker", render=True)
    assert estimate.input_tokens > 0
    assert estimate.entries
    last = (await talk.turns.list(before_position=99, limit=1)).items[0]
    fork = await talk.fork(last.public_id, title="Fork")
    assert (fork.conversation.forked_from_turn_public_id, fork.runner_effects.status) == (
        last.public_id, "untouched",
    )  # fmt: skip
    side = await talk.fork(side=True)
    sides = await listed(home.conversations.each(side=True))
    assert [it.public_id for it in sides] == [side.conversation.public_id]
    (child,) = (await talk.children()).items
    assert [child] == await listed(talk.iter_children())
    assert child.parent.spawn_node_key == "r2t0"
    page = await talk.events(limit=2)
    assert (page.items[0].sequence, page.next_after) == (1, page.items[1].cursor)
    events = await listed(talk.iter_events())
    assert [it.sequence for it in events] == list(range(1, len(events) + 1))


async def live(talk: Any) -> None:
    start = (await talk.fetch()).latest_event_cursor
    await talk.inputs.create("[dev:slow]")
    with pytest.raises(Conflict) as refused:
        await talk.delete()
    assert refused.value.code == "conversation_busy"
    assert (await talk.cancel()).public_id
    with pytest.raises(InvalidRequest) as nothing:
        await talk.cancel()
    assert (nothing.value.code, nothing.value.status) == ("not_running", 422)
    compaction = await talk.compact(model="dev/thinker")
    assert (compaction.kind, compaction.mid_turn) == ("compaction_summary", False)
    async for frame in talk.transcript(after=start):
        if frame.type == "turn" and frame.data["turn_public_id"] == compaction.turn_public_id:
            break
    async for frame in talk.progress(after=start):
        assert frame.type in ("turn", "run", "task")
        assert frame.cursor is not None
        break


# --- tests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_every_method_does_what_it_says_and_every_route_has_one(server: Server, way: str) -> None:
    asked: set[str] = set()

    def note(request: httpx.Request) -> None:
        asked.add(f"{request.method} {request.url.path}")

    async def note_async(request: httpx.Request) -> None:
        note(request)

    async def journey(client: Any) -> Any:
        client._via.http.event_hooks = {"request": [note if way == "sync" else note_async]}
        home = client.workspace(await in_workspaces(client))
        talk = await in_conversations(home)
        await in_inputs(talk)
        await in_turns(talk)
        await in_runs(home, talk)
        await in_decks(talk)
        await in_failed_runs(home, talk)
        await around_them(home, talk)
        await live(talk)
        return client

    client = use(way, journey, server.url, server.keys["member"])
    if isinstance(client, Awaited):
        assert surface() - client.called == set()
    missed = {
        name for name, pattern in served().items() if not any(pattern.fullmatch(it) for it in asked)
    }
    assert missed == set()


def test_it_imports_nothing_of_the_server() -> None:
    code = (
        "import sys, stenograph.client as c; names = sorted(m for m in sys.modules"
        " if m.startswith('stenograph.') and not m.startswith('stenograph.client'));"
        " assert names == [], names; assert all(hasattr(c, n) for n in c.__all__)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("way", WAYS)
def test_an_id_that_is_none_is_asked_of_nobody(way: str) -> None:
    async def act(client: Any) -> None:
        for id in ("", ".", ".."):
            with pytest.raises(ValueError, match="is no id"):
                await client.workspaces.delete(id, 0)
            with pytest.raises(ValueError, match="is no id"):
                client.workspace(id)

    use(way, act, "http://nowhere.invalid", "k")
