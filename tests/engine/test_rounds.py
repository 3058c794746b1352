"""What a run leaves in the record: rounds, calls, attempts, receipts, in every reading."""

import json

import pytest

from engine.driving import Driven
from exports import exported, exported_bytes
from model import answering
from oracles import atif_package, harbor
from stenograph.engine import rounds, store
from stenograph.engine.choice import Rules
from stenograph.engine.models.answer import Response, Usage
from stenograph.engine.models.failures import Patience
from stenograph.engine.models.request import ToolCall
from stenograph.engine.results import LONGEST, PREVIEW
from stenograph.retention.integrity import check
from stenograph.runs import candidate, reasoning
from stenograph.sessions import messages, session


def feed(driven: Driven, session_id: str) -> list[tuple]:
    def look(tx):
        found = session.find(tx, driven.owner, session_id)
        return [
            (it.kind, it.content, it.status, it.outcome)
            for it in messages.page(tx, found.id, None, 50).items
        ]

    return driven.read(look)


def facts(driven: Driven, session_id: str) -> session.Session:
    return driven.read(lambda tx: session.find(tx, driven.owner, session_id))


def account(driven: Driven, session_id: str) -> session.Account:
    def look(tx):
        found = session.find(tx, driven.owner, session_id)
        return session.details(tx, [found])[found.id].usage

    return driven.read(look)


def tasks(driven: Driven, session_id: str) -> list[tuple]:
    return driven.rows(
        "SELECT k.key, k.kind, k.status, k.name FROM tasks k JOIN runs r ON r.id = k.run_id"
        " JOIN conversations c ON c.id = r.conversation_id WHERE c.public_id = :id ORDER BY k.id",
        id=session_id,
    )


def invocations(driven: Driven, session_id: str) -> list[tuple]:
    return driven.rows(
        "SELECT k.key, i.number, i.status, i.model_ref, k.selected_invocation_id = i.id"
        " FROM invocations i JOIN tasks k ON k.id = i.task_id JOIN runs r ON r.id = k.run_id"
        " JOIN conversations c ON c.id = r.conversation_id WHERE c.public_id = :id ORDER BY i.id",
        id=session_id,
    )


def valid(driven: Driven, session_id: str) -> dict:
    """The trajectory of a session, which both oracles accept and whose totals are its steps'."""
    data = exported_bytes(driven.database, session_id)
    assert atif_package.validate(data) == []
    assert harbor.validate(data) == []
    document = json.loads(data)
    totals = document["final_metrics"]["extra"]["session_totals"]
    metrics = [step["metrics"] for step in document["steps"] if "metrics" in step]
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        assert totals.get(f"total_{name}", 0) == sum(it.get(name, 0) for it in metrics)
    assert totals["total_steps"] == len(document["steps"])
    return document


def test_thinking_and_parallel_tools(driven: Driven) -> None:
    session_id = driven.open("[dev:files]", model="dev/thinker", reasoning_effort="high")
    driven.settle()
    assert [task[:3] for task in tasks(driven, session_id)] == [
        ("r1", "model_task", "completed"),
        ("r2t0", "tool_task", "completed"),
        ("r2t1", "tool_task", "completed"),
        ("r2", "model_task", "completed"),
    ]
    answer = "They say: the content of README.md, the content of LICENSE"
    assert feed(driven, session_id) == [
        ("prompt", "[dev:files]", None, None),
        ("reply", answer, "exit", "success"),
    ]
    first, second = valid(driven, session_id)["steps"][1:]
    assert first["reasoning_content"].startswith("I need both files")
    assert [call["arguments"]["path"] for call in first["tool_calls"]] == ["README.md", "LICENSE"]
    assert [it["content"] for it in first["observation"]["results"]] == [
        "the content of README.md",
        "the content of LICENSE",
    ]
    assert (first["model_name"], first["reasoning_effort"]) == ("thinker", "high")
    assert second["message"] == answer
    assert check(driven.database) == []


def test_reasoning_pages_show_each_round(driven: Driven) -> None:
    session_id = driven.open("[dev:steps]")
    driven.settle()
    [(turn_id, variant_id)] = driven.rows(
        "SELECT t.public_id, v.public_id FROM turns t JOIN variants v ON v.turn_id = t.id"
    )

    def look(tx):
        from stenograph.engine.work import load

        work = load(tx, variant_id)
        return reasoning.page(tx, candidate.find(tx, work.conversation, turn_id, variant_id))

    page = driven.read(look)
    assert [(item.task_key, item.text) for item in page.items] == [
        ("r1", "First I list the files."),
        ("r2", "Then I read the first of them."),
        ("r3", "That is enough."),
    ]
    assert {item.model.reasoning_enabled for item in page.items} == {True}
    assert facts(driven, session_id).status == "exit"


def test_the_trace_is_replayed_and_never_sealed(driven: Driven) -> None:
    """dev/thinker refuses reasoning whose signature does not come back with it unchanged."""
    session_id = driven.open("[dev:steps]")
    driven.settle()
    driven.say(session_id, "And now?")
    driven.settle()
    assert feed(driven, session_id)[-1][1] == "You said: And now?"
    sealed = driven.rows("SELECT request FROM invocation_details ORDER BY invocation_id")
    signatures = driven.rows("SELECT reasoning_trace FROM invocation_details")
    assert all(json.loads(trace)["signature"] for (trace,) in signatures)
    last = json.loads(sealed[-1][0])
    assert "signature" not in sealed[-1][0]
    assert [entry["role"] for entry in last["entries"]] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert last["request_options"]["model"] == "dev/thinker"


@pytest.mark.parametrize(
    ("name", "waits"), [("overload", [2.0, 4.0]), ("rate-limit", [1.0]), ("cut", [0.5])]
)
def test_an_attempt_that_failed_is_superseded(
    driven: Driven, name: str, waits: list[float]
) -> None:
    session_id = driven.open(f"[dev:{name}] hello")
    driven.settle()
    assert driven.waits == waits
    made = invocations(driven, session_id)
    failed = [("r1", n, "failed", "thinker", False) for n in range(1, len(made))]
    expected = [*failed, ("r1", len(made), "completed", "thinker", True)]
    assert [(*it[:4], bool(it[4])) for it in made] == expected
    assert len(made) == len(waits) + 1
    steps = valid(driven, session_id)["steps"]
    assert [step["source"] for step in steps] == ["user", "agent"]
    assert steps[1]["extra"]["stenograph"]["attempts"] == len(made)
    billed = driven.rows("SELECT count(*), sum(prompt_tokens) FROM usage_receipts")[0]
    # Turned away, an attempt costs nothing; broken off or turned away after half, it does.
    assert billed[0] == len(made)
    assert account(driven, session_id).input_tokens == int(billed[1])
    assert check(driven.database) == []


@pytest.mark.parametrize(
    ("name", "reason", "error_class"),
    [
        ("refuse", "refused", "invalid_request"),
        ("bad-request", "invalid_request", "invalid_request"),
        ("unauthorized", "unauthorized", "agent_model_key_missing"),
        ("too-long", "context_too_long", "request_too_large"),
        ("empty", "empty_answer", "resource_unavailable"),
    ],
)
def test_a_model_that_fails_for_good_ends_its_turn_and_not_the_next(
    driven: Driven, name: str, reason: str, error_class: str
) -> None:
    session_id = driven.open(f"[dev:{name}]")
    driven.settle()
    found = facts(driven, session_id)
    assert (found.status, found.outcome) == ("error", "failure")
    assert (found.error_class, found.reason_code) == (error_class, reason)
    assert feed(driven, session_id)[-1] == ("reply", "", "error", "failure")
    # A refused finish stores no response, reasoning or trace.
    kept = driven.rows(
        "SELECT message, reasoning, reasoning_trace, response FROM invocation_details"
    )
    assert set(kept) == {(None, None, None, None)}
    assert [step["source"] for step in valid(driven, session_id)["steps"]] == ["user"]
    driven.say(session_id, "Then something else")
    driven.settle()
    assert feed(driven, session_id)[-1] == (
        "reply", "You said: Then something else", "exit", "success",
    )  # fmt: skip
    assert account(driven, session_id).cost_usd == 0.0
    assert check(driven.database) == []


def test_a_fallback_answers_with_its_own_settings(driven: Driven) -> None:
    """No key is set up for the wanted model, which is told without asking anyone."""
    driven.rules = Rules(fallbacks={"anthropic/claude-sonnet-4-5": ["dev/small"]})
    session_id = driven.open("hi", model="anthropic/claude-sonnet-4-5", reasoning_effort="low")
    driven.settle()
    made = [it[1:] for it in invocations(driven, session_id)]
    assert [(*it[:3], bool(it[3])) for it in made] == [
        (1, "failed", "claude-sonnet-4-5", False),
        (2, "completed", "small", True),
    ]
    efforts = driven.rows("SELECT reasoning_effort FROM invocations ORDER BY id")
    assert efforts == [("low",), (None,)]
    assert feed(driven, session_id)[-1][1] == "You said: hi"
    # Turned away at the door, the first attempt took nothing.
    assert account(driven, session_id).cost_usd == 0.0
    assert check(driven.database) == []


def test_patience_ends(driven: Driven) -> None:
    driven.rules = Rules(patience=Patience(attempts=2))
    session_id = driven.open("[dev:overload]")
    driven.settle()
    assert [it[2] for it in invocations(driven, session_id)] == ["failed", "failed"]
    assert facts(driven, session_id).reason_code == "overloaded"
    assert check(driven.database) == []


def test_what_a_model_calls_wrongly_is_told_to_it(driven: Driven) -> None:
    malformed = driven.open("[dev:malformed]")
    unknown = driven.open("[dev:unknown-tool]")
    raising = driven.open("[dev:call broken]")
    driven.settle()
    assert not any(name != "broken" for name, _, _ in driven.tools.made)
    for session_id, said in (
        (malformed, 'The arguments of read are not a JSON object: {"path": "README.md"'),
        (unknown, "There is no tool named 'no_such_tool'"),
        (raising, "ValueError: it fell apart"),
    ):
        assert tasks(driven, session_id)[1][2] == "failed"
        assert said in feed(driven, session_id)[-1][1]
        document = valid(driven, session_id)
        assert said in document["steps"][1]["observation"]["results"][0]["content"]
    call = exported(driven.database, malformed)["steps"][1]["tool_calls"][0]
    assert call["arguments"] == {}
    assert call["extra"]["stenograph"]["arguments_as_written"] == '{"path": "README.md"'
    assert check(driven.database) == []


def test_arguments_that_no_export_holds_are_told_as_they_were_written(driven: Driven) -> None:
    deep = '{"a":' * 950 + "1" + "}" * 950
    session_id = driven.open("hi")
    (asked,) = driven.read(store.unsettled)
    call = answering.ask(driven.database, asked)
    answering.hear(driven.database, asked, call, "", "", 1, deep)
    call = exported(driven.database, session_id)["steps"][1]["tool_calls"][0]
    assert call["arguments"] == {}
    assert call["extra"]["stenograph"]["arguments_as_written"] == deep


def test_ids_of_calls_are_storable_and_each_is_there_once(driven: Driven) -> None:
    session_id = driven.open("hi")
    (asked,) = driven.read(store.unsettled)
    call = answering.ask(driven.database, asked)
    made = (
        ToolCall("c", "look", "{}"),
        ToolCall("c", "look", "{}"),
        ToolCall("c\x00\ud800", "look\ud800", '{"a": "\ud800"}'),
    )
    response = Response(
        "dev", "thinker", "", "", None, made, Usage(), None, "tool_call", "{}", "{}"
    )  # fmt: skip
    driven.write(lambda tx: rounds.hear(tx, asked, call.made, call.due, response))
    found = exported(driven.database, session_id)["steps"][1]["tool_calls"]
    assert [it["tool_call_id"] for it in found] == ["c", "c-1", "c\ufffd\ufffd"]
    assert found[2]["function_name"] == "look\ufffd"
    assert found[2]["extra"]["stenograph"]["arguments_as_written"] == '{"a": "\ufffd"}'


def test_a_huge_output_is_kept_up_to_a_limit_and_told_in_short(driven: Driven) -> None:
    session_id = driven.open("[dev:call big]")
    driven.settle()
    [(output,)] = driven.rows("SELECT output FROM task_details")
    assert output == "0123456789" * (LONGEST // 10)
    document = valid(driven, session_id)
    assert document["extra"]["fidelity"]["excerpt_tool_events"] == 1
    told = feed(driven, session_id)[-1][1].removeprefix("It gave: ")
    assert len(told) == PREVIEW
    assert f"{LONGEST} characters in all" in told


def test_what_no_database_takes_is_replaced(driven: Driven) -> None:
    session_id = driven.open("[dev:call binary] \x00")
    driven.settle()
    assert feed(driven, session_id)[-1][1] == "It gave: \ufffd\ufffd and words"
    valid(driven, session_id)
