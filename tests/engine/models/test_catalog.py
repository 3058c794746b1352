"""Names of models, and effective reasoning (agent-api.md 4.2, reason-api.md 3)."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stenograph.engine.models import credentials
from stenograph.engine.models.catalog import (
    PROVIDERS,
    Effective,
    ModelId,
    ability,
    effective,
    parse,
    parse_endpoints,
)
from stenograph.errors import InvalidInputError, RefusedError


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("dev/thinker", ModelId("dev", "thinker")),
        ("dev:small", ModelId("dev", "small")),
        ("byok:openai:gpt-5.1", ModelId("openai", "gpt-5.1", byok=True)),
        ("byok:anthropic/claude-opus-5", ModelId("anthropic", "claude-opus-5", byok=True)),
        ("groq/openai/gpt-oss-120b", ModelId("groq", "openai/gpt-oss-120b")),
        ("ollama/qwen3:8b", ModelId("ollama", "qwen3:8b")),
        (
            "bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0",
            ModelId("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
        ),
    ],
)
def test_a_model_is_named_in_three_ways(text: str, model: ModelId) -> None:
    assert parse(text) == model


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dev",
        "/x",
        "dev/",
        "dev/ x",
        "dev/x\n",
        "byok:",
        "byok:dev",
        "nobody/x",
        ":x",
        "byok::x",
    ],
)
def test_what_is_no_model_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse(text)
    assert refused.value.code == "invalid_model"


@given(
    provider=st.sampled_from(sorted(PROVIDERS)),
    ref=st.text("abc-./:0", min_size=1).filter(lambda it: it == it.strip()),
)
@settings(max_examples=60)
def test_a_name_that_is_written_is_read_back(provider: str, ref: str) -> None:
    model = ModelId(provider, ref)
    assert parse(str(model)) == model


def test_endpoints_of_the_settings_are_providers() -> None:
    endpoints = parse_endpoints("lab=http://10.0.0.5:8000/v1, mine=https://llm.example/v1")
    assert endpoints == {"lab": "http://10.0.0.5:8000/v1", "mine": "https://llm.example/v1"}
    model = parse("lab/qwen", endpoints)
    assert model.provider.protocol == "openai-chat"
    with pytest.raises(InvalidInputError, match="name is set up"):
        parse("lab/qwen")
    with pytest.raises(InvalidInputError):
        parse_endpoints("lab")


def test_the_dev_models_are_these_two() -> None:
    with pytest.raises(InvalidInputError) as refused:
        effective(ModelId("dev", "huge"), None, None)
    assert refused.value.code == "invalid_model"


THINKER = ModelId("dev", "thinker")
SMALL = ModelId("dev", "small")
#: Thinks only when asked, at any effort.
HAIKU = ModelId("anthropic", "claude-haiku-4-5")
#: Always thinks.
GPT5 = ModelId("openai", "gpt-5")
GEMINI_PRO = ModelId("google", "gemini-2.5-pro")
GEMINI_FLASH = ModelId("google", "gemini-2.5-flash")
GPT41 = ModelId("openai", "gpt-4.1")


@pytest.mark.parametrize(
    ("model", "enabled", "effort", "expected"),
    [
        (THINKER, None, None, Effective(True, "medium")),
        (THINKER, None, "low", Effective(True, "low")),
        (THINKER, True, "high", Effective(True, "high")),
        (THINKER, False, None, Effective(False, None)),
        (THINKER, False, "high", Effective(False, None)),
        (SMALL, None, None, Effective(None, None)),
        (SMALL, True, None, Effective(None, None)),
        (SMALL, False, None, Effective(None, None)),
        (HAIKU, None, None, Effective(False, None)),
        (HAIKU, True, None, Effective(True, None)),
        (HAIKU, None, "high", Effective(True, "high")),
        (GPT5, False, None, Effective(True, None)),
        (GPT5, False, "minimal", Effective(True, "minimal")),
        (GPT5, None, None, Effective(True, None)),
        (GEMINI_PRO, False, None, Effective(True, None)),
        (GEMINI_FLASH, None, None, Effective(None, None)),
        (GEMINI_FLASH, False, None, Effective(False, None)),
        (GPT41, True, None, Effective(None, None)),
    ],
)
def test_effective_reasoning(
    model: ModelId, enabled: bool | None, effort: str | None, expected: Effective
) -> None:
    assert effective(model, enabled, effort) == expected


@pytest.mark.parametrize(
    ("model", "effort"),
    [
        (THINKER, "none"),
        (THINKER, "max"),
        (SMALL, "low"),
        (GPT5, "none"),
        (GPT5, "max"),
        (GPT41, "low"),
        (HAIKU, "LOW"),
        (ModelId("mistral", "magistral-medium-latest"), "high"),
        (ModelId("google", "gemini-3-pro-preview"), "medium"),
    ],
)
def test_an_effort_that_the_model_lacks_is_refused(model: ModelId, effort: str) -> None:
    with pytest.raises(RefusedError) as refused:
        effective(model, None, effort)
    assert refused.value.code == "unsupported_reasoning_effort"


REASONERS = (THINKER, SMALL, HAIKU, GPT5, GEMINI_PRO, GEMINI_FLASH, GPT41)


@given(st.sampled_from(REASONERS), st.sampled_from([None, True, False]), st.data())
@settings(max_examples=60)
def test_effective_settings_are_their_own_effect(
    model: ModelId, enabled: bool | None, data: st.DataObject
) -> None:
    """What an invocation froze can be asked for again: nothing moves the second time."""
    effort = data.draw(st.sampled_from([None, *sorted(ability(model).efforts)]))
    once = effective(model, enabled, effort)
    assert effective(model, once.reasoning_enabled, once.reasoning_effort) == once
    if once.reasoning_enabled is not True:
        assert once.reasoning_effort is None


def test_keys_come_from_the_environment_and_never_show() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-1",
        "STENO_OPENAI_API_KEY": "sk-2",
        "STENO_OLLAMA_BASE_URL": "http://10.0.0.5:11434/v1",
    }
    openai = credentials.from_environment(environment, "openai", {})
    assert openai.api_key == "sk-2"
    assert "sk-2" not in repr(openai)
    assert credentials.suffice(PROVIDERS["openai"], openai)
    ollama = credentials.from_environment(environment, "ollama", {})
    assert ollama.base_url == "http://10.0.0.5:11434/v1"
    assert credentials.suffice(PROVIDERS["ollama"], ollama)
    missing = credentials.from_environment(environment, "anthropic", {})
    assert not credentials.suffice(PROVIDERS["anthropic"], missing)
    lab = credentials.from_environment({}, "lab", {"lab": "http://lab/v1"})
    assert credentials.suffice(ModelId("lab", "x").provider, lab)
    assert not credentials.suffice(ModelId("lab", "x").provider, credentials.Credentials())


def test_nothing_of_the_providers_is_imported_before_a_model_is_asked() -> None:
    code = """
import asyncio, sys
from stenograph.engine.models import catalog, credentials, pricing, request, stream
from stenograph.engine.models.request import ModelRequest, user
async def ask():
    asked = ModelRequest(catalog.parse("dev/thinker"), (user("Hello"),))
    return [event async for event in stream.stream(asked, credentials.Credentials())][-1].text
assert asyncio.run(ask()) == "You said: Hello"
heavy = {"pydantic_ai", "pydantic", "anthropic", "openai", "google.genai", "boto3", "genai_prices"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
