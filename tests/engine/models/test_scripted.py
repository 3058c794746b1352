"""The dev models: what they play, and that they play it the same way twice."""

import asyncio
from pathlib import Path

import pytest

from engine.models.loopback import Heard, collect
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.models.failures import ModelFailedError
from stenograph.engine.models.request import (
    Message,
    ModelRequest,
    Reasoning,
    Settings,
    Text,
    ToolResult,
    results,
    user,
)
from stenograph.engine.models.scenes import _shipped
from stenograph.errors import InvalidInputError

THINKER = ModelId("dev", "thinker")
SMALL = ModelId("dev", "small")


def play(
    *messages: Message,
    model: ModelId = THINKER,
    attempt: int = 1,
    script: Path | None = None,
    **settings: object,
) -> Heard:
    request = ModelRequest(model, messages, settings=Settings(**settings), attempt=attempt)
    return asyncio.run(collect(request, Credentials(script=script)))


def failing(*messages: Message, **how: object) -> ModelFailedError:
    with pytest.raises(ModelFailedError) as failed:
        play(*messages, **how)
    return failed.value


def outputs(heard: Heard, *texts: str) -> Message:
    return results(
        *(
            ToolResult(call.id, call.name, text)
            for call, text in zip(heard.response.tool_calls, texts, strict=True)
        )
    )


def test_the_same_request_gives_the_same_answer_to_the_last_token() -> None:
    assert play(user("Hello")) == play(user("Hello"))


def test_the_thinker_thinks_and_the_small_one_does_not() -> None:
    thinker, small = play(user("Hello")), play(user("Hello"), model=SMALL)
    assert thinker.text == thinker.response.text == "You said: Hello"
    assert thinker.reasoning == thinker.response.reasoning != ""
    assert thinker.response.usage.reasoning_tokens > 0
    assert small.response.reasoning == ""
    assert small.response.reasoning_trace is None
    assert play(user("Hello"), reasoning_enabled=False).response.reasoning == ""


def test_a_scene_is_played_round_by_round() -> None:
    asked = user("[dev:steps]")
    first = play(asked)
    assert first.calls == [
        (call.id, call.name, call.arguments) for call in first.response.tool_calls
    ]
    assert [it.name for it in first.response.tool_calls] == ["glob"]
    history = (asked, first.response.message, outputs(first, "README.md"))
    second = play(*history)
    assert [it.name for it in second.response.tool_calls] == ["read"]
    assert second.response.tool_calls[0].id != first.response.tool_calls[0].id
    third = play(*history, second.response.message, outputs(second, "the text"))
    assert third.response.text == "Two steps done: the text"
    assert third.response.finish_reason == "stop"


def test_parallel_calls_and_their_results() -> None:
    asked = user("[dev:files]")
    first = play(asked)
    assert [it.parsed()["path"] for it in first.response.tool_calls] == ["README.md", "LICENSE"]
    last = play(asked, first.response.message, outputs(first, "one", "two"))
    assert last.response.text == "They say: one, two"


def test_a_new_turn_is_a_new_scene_and_a_steer_is_not() -> None:
    asked = user("[dev:files]")
    first = play(asked)
    done = outputs(first, "one", "two")
    steered = play(asked, first.response.message, done, user("Be quick."))
    assert steered.response.text == "They say: one, two"
    switched = play(asked, first.response.message, done, user("[dev:steps]"))
    assert switched.response.tool_calls[0].name == "glob"
    last = play(asked, first.response.message, done)
    again = play(asked, first.response.message, done, last.response.message, user("Thanks"))
    assert again.response.text == "You said: Thanks"


def test_a_person_asks_for_calls_in_the_message() -> None:
    asked = user('[dev:call run {"command": "ls [a]"}] and [dev:call stop]')
    first = play(asked)
    assert [(it.name, it.parsed()) for it in first.response.tool_calls] == [
        ("run", {"command": "ls [a]"}),
        ("stop", {}),
    ]
    last = play(asked, first.response.message, outputs(first, "x", "y"))
    assert last.response.text == "It gave: x, y"
    assert failing(user("[dev:call run {oops]")).kind == "invalid_request"


OWN = """Play this:
```dev-scene
[[round]]
say = "One."
call = [{ tool = "look", arguments = { at = ["{input}"] } }]
[[round]]
say = "Two."
```
"""


def test_a_message_may_bring_its_own_scene() -> None:
    first = play(user(OWN))
    assert first.response.text == "One."
    last = play(user(OWN), first.response.message, outputs(first, "seen"))
    assert last.response.text == "Two."
    assert failing(user("```dev-scene\n[[round]]\nsey = 1\n```")).kind == "invalid_request"
    assert failing(user("```dev-scene\n[[round\n```")).kind == "invalid_request"


def test_a_file_of_scenes_wins_over_the_shipped_ones(tmp_path: Path) -> None:
    script = tmp_path / "scenes.toml"
    script.write_text('[[answer.round]]\nsay = "Mine: {input}"\n', encoding="utf-8")
    assert play(user("Hello"), script=script).response.text == "Mine: Hello"
    assert play(user("[dev:files]"), script=script).response.tool_calls
    assert "nothing" in failing(user("[dev:nothing]"), script=script).message


def test_every_shipped_scene_says_what_it_is_and_can_be_played() -> None:
    scenes = _shipped("thinker")
    assert all(scene.about for name, scene in scenes.items() if name != "answer")
    for name in scenes.keys() - {"slow"}:
        fails = scenes[name].round[0].fail or name in {"empty", "thought-only"}
        if fails:
            failing(user(f"[dev:{name}]"))
        else:
            play(user(f"[dev:{name}]"))


@pytest.mark.parametrize(
    ("scene", "kind"),
    [
        ("refuse", "refused"),
        ("empty", "empty_answer"),
        ("thought-only", "empty_answer"),
        ("bad-request", "invalid_request"),
        ("unauthorized", "unauthorized"),
        ("too-long", "context_too_long"),
    ],
)
def test_failures_that_stay(scene: str, kind: str) -> None:
    for attempt in (1, 5):
        assert failing(user(f"[dev:{scene}]"), attempt=attempt).kind == kind


@pytest.mark.parametrize(
    ("scene", "kind", "times", "retry_after"),
    [
        ("overload", "overloaded", 2, None),
        ("rate-limit", "rate_limited", 1, 1.0),
        ("cut", "interrupted", 1, None),
    ],
)
def test_failures_that_pass(scene: str, kind: str, times: int, retry_after: float | None) -> None:
    for attempt in range(1, times + 1):
        failed = failing(user(f"[dev:{scene}] x"), attempt=attempt)
        assert (failed.kind, failed.retry_after) == (kind, retry_after)
    assert play(user(f"[dev:{scene}] x"), attempt=times + 1).response.text


def test_malformed_arguments_and_unknown_tools() -> None:
    (call,) = play(user("[dev:malformed]")).response.tool_calls
    with pytest.raises(InvalidInputError) as refused:
        call.parsed()
    assert refused.value.code == "invalid_tool_arguments"
    assert play(user("[dev:unknown-tool]")).response.tool_calls[0].name == "no_such_tool"


def test_a_huge_answer_comes_in_few_deltas() -> None:
    heard = play(user("[dev:huge]"))
    assert len(heard.response.text) > 1_000_000
    assert len(heard.deltas) < 1_000


def test_usage_grows_with_the_history_and_the_cache_holds_what_was_sent_before() -> None:
    asked = user("[dev:files]")
    first = play(asked)
    last = play(asked, first.response.message, outputs(first, "one", "two")).response.usage
    assert first.response.usage.cached_tokens == 0
    assert last.cached_tokens == first.response.usage.prompt_tokens
    assert last.prompt_tokens > last.cached_tokens


def test_signed_reasoning_must_come_back_unchanged() -> None:
    first = play(user("Hello")).response
    assert play(user("Hello"), first.message, user("And?")).response.text == "You said: And?"
    changed = Message(
        "assistant", (Reasoning("I thought otherwise.", first.reasoning_trace), Text(first.text))
    )
    assert failing(user("Hello"), changed, user("And?")).kind == "invalid_request"


def test_a_scene_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    long = "x" * 50_000
    for said in (
        '[[round]]\nsay = "12345678"\nrepeat = 100_000_000_000',
        f'[[round]]\nsay = "{"{input}" * 1_000}"\n# {long}',
        f'[[round]]\nthink = "{"{input}" * 1_000}"\n# {long}',
        '[[round]]\nsay = "x"\nrepeat = -1',
        f"[[round]]\npause_ms = {'9' * 400}",
        f"a = {'[' * 5_000}",
        f"{'a.' * 50_000}b = 1",
        f"[{'a . ' * 50_000}b]",
        "# " + "x" * 200_000,
    ):
        assert failing(user(f"```dev-scene\n{said}\n```")).kind == "invalid_request"


def test_calls_that_are_nested_too_deep_are_refused() -> None:
    deep = '{"a":' * 5_000 + "1" + "}" * 5_000
    assert failing(user(f"[dev:call read {deep}]")).kind == "invalid_request"


def test_reasoning_is_signed_as_a_record_keeps_it() -> None:
    first = play(user("a\x00b"))
    assert "\x00" not in first.response.reasoning
    assert play(user("a\x00b"), first.response.message, user("And?")).response.text


def test_a_file_of_scenes_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    gone, garbled = tmp_path / "gone.toml", tmp_path / "garbled.toml"
    garbled.write_bytes(b"\xff\xfe")
    for script in (gone, garbled):
        with pytest.raises(ModelFailedError, match="file of scenes") as failed:
            play(user("Hello"), script=script)
        assert failed.value.kind == "invalid_request"
