"""Costs: known ones to the cent, unknown ones as None."""

import pytest

from stenograph.clock import parse_iso
from stenograph.engine.models.answer import Usage
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.pricing import cost_usd

MILLION = 1_000_000
HAIKU = ModelId("anthropic", "claude-haiku-4-5")


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(MILLION, 0), 1.0),
        (Usage(0, MILLION), 5.0),
        (Usage(MILLION, 0, cached_tokens=MILLION), 0.1),
        (Usage(MILLION, 0, cache_write_tokens=MILLION), 1.25),
        (
            Usage(
                MILLION,
                0,
                cache_write_tokens=MILLION,
                details={"ephemeral_1h_input_tokens": MILLION},
            ),
            2.0,
        ),
        (Usage(0, 0), 0.0),
    ],
)
def test_each_kind_of_token_has_its_price(usage: Usage, cost: float) -> None:
    assert cost_usd(HAIKU, usage, parse_iso("2026-11-01T00:00:00Z")) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("model", "usage"),
    [
        (HAIKU, Usage()),
        (HAIKU, Usage(prompt_tokens=10)),
        (HAIKU, Usage(completion_tokens=10)),
        (HAIKU, Usage(10, 10, cached_tokens=20)),
        (ModelId("anthropic", "claude-unheard-of"), Usage(10, 10)),
        (ModelId("ollama", "qwen3:8b"), Usage(10, 10)),
        (ModelId("lab", "gpt-5"), Usage(10, 10)),
    ],
)
def test_what_nobody_knows_is_none_and_not_zero(model: ModelId, usage: Usage) -> None:
    assert cost_usd(model, usage) is None


def test_the_dev_models_are_free() -> None:
    assert cost_usd(ModelId("dev", "thinker"), Usage(10, 10)) == 0.0


@pytest.mark.parametrize(
    "model",
    [
        ModelId("openai", "gpt-5.1"),
        ModelId("openai-chat", "gpt-4.1"),
        ModelId("google", "gemini-2.5-flash"),
        ModelId("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
        ModelId("mistral", "magistral-medium-latest"),
        ModelId("groq", "openai/gpt-oss-120b"),
    ],
)
def test_every_provider_with_a_price_list_is_found_in_it(model: ModelId) -> None:
    assert cost_usd(model, Usage(MILLION, MILLION)) > 0
