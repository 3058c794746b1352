"""What each provider is told about reasoning, and what it is told to keep to itself."""

from typing import Any

import pytest

from engine.models.loopback import ask
from engine.models.samples import SAMPLES
from engine.models.test_anthropic import TWO_CALLS
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.request import (
    Message,
    ModelRequest,
    Reasoning,
    Settings,
    Text,
    Tool,
    system,
    user,
)

READ = Tool("read_file", "Reads a file.")
REPLIES = {"anthropic": TWO_CALLS} | {
    provider: SAMPLES[name]().answer
    for provider, name in (
        ("openai", "openai_responses"),
        ("google", "google"),
        ("groq", "groq"),
        ("bedrock", "bedrock"),
    )
}


def told(provider: str, model_ref: str, **settings: Any) -> dict[str, Any]:
    """The body of a request with these settings."""
    request = ModelRequest(
        ModelId(provider, model_ref), (user("Hello"),), (READ,), Settings(**settings)
    )
    _, asked = ask(request, REPLIES[provider], "/v1" if provider == "openai" else "")
    assert isinstance(asked.body, dict)
    return asked.body


def test_anthropic_thinks_by_budget_or_by_effort_as_the_model_does() -> None:
    assert "thinking" not in told("anthropic", "claude-haiku-4-5")
    low = told("anthropic", "claude-haiku-4-5", reasoning_effort="low")
    high = told("anthropic", "claude-haiku-4-5", reasoning_effort="high")
    assert low["thinking"]["budget_tokens"] < high["thinking"]["budget_tokens"]
    adaptive = told("anthropic", "claude-opus-5", reasoning_effort="xhigh")
    assert adaptive["thinking"]["type"] == "adaptive"
    assert adaptive["output_config"]["effort"] == "xhigh"
    off = told("anthropic", "claude-opus-5", reasoning_enabled=False)
    assert off["thinking"] == {"type": "disabled"}
    # On by default, so asking for it changes nothing and costs no other effort.
    assert told("anthropic", "claude-opus-5", reasoning_enabled=True) == told(
        "anthropic", "claude-opus-5"
    )


def test_openai_keeps_nothing_and_gives_its_reasoning_sealed_with_a_summary() -> None:
    body = told("openai", "gpt-5", reasoning_effort="high")
    assert body["store"] is False
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert "reasoning.encrypted_content" in body["include"]
    assert told("openai", "gpt-5", reasoning_summary=None).get("reasoning", {}) == {}
    assert told("openai", "gpt-5.1", reasoning_enabled=False)["reasoning"] == {"effort": "none"}
    assert "reasoning" not in told("openai", "gpt-4.1")


def test_gemini_shows_its_thoughts_whether_or_not_it_is_told_how_much_to_think() -> None:
    def thinking(model_ref: str, **settings: Any) -> dict[str, Any]:
        # The service reads both spellings of a name, `includeThoughts` and `include_thoughts`.
        config = told("google", model_ref, **settings)["generationConfig"]
        found = config.get("thinkingConfig", {}).items()
        return {name.replace("_", "").lower(): value for name, value in found}

    assert thinking("gemini-2.5-flash") == {"includethoughts": True}
    assert thinking("gemini-2.5-flash", reasoning_enabled=False) == {"thinkingbudget": 0}
    assert thinking("gemini-2.5-flash", reasoning_effort="high")["includethoughts"] is True
    assert thinking("gemini-3-pro-preview", reasoning_effort="low")["thinkinglevel"] == "LOW"
    assert thinking("gemini-2.0-flash") == {}


def test_groq_and_bedrock_are_told_in_their_words() -> None:
    assert told("groq", "openai/gpt-oss-120b", reasoning_effort="low")["reasoning_effort"] == "low"
    claude = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
    fields = told("bedrock", claude, reasoning_enabled=True)["additionalModelRequestFields"]
    assert fields["thinking"]["type"] == "enabled"


def test_the_cache_is_asked_for_when_it_pays() -> None:
    assert "cache_control" not in str(told("anthropic", "claude-haiku-4-5"))
    assert "cache_control" in str(told("anthropic", "claude-haiku-4-5", cache=True))


@pytest.mark.parametrize("trace", [None, "", "{", "[]", '{"provider_id": "anthropic"}'])
def test_reasoning_without_a_trace_that_can_be_read_is_left_out(trace: str | None) -> None:
    history = (
        system("Be brief."),
        user("Hello"),
        Message("assistant", (Reasoning("A secret thought.", trace), Text("Hi."))),
        system("Be briefer."),
        user("And?"),
    )
    _, asked = ask(ModelRequest(ModelId("anthropic", "claude-haiku-4-5"), history), TWO_CALLS)
    assert "secret thought" not in str(asked.body)
    said = asked.body["messages"]
    assert [it["role"] for it in said] == ["user", "assistant", "user"]
    assert "Be briefer." in str(said[2])
    assert asked.body["system"].endswith("Be brief.")
