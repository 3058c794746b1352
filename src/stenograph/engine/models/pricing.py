"""What a call cost, by the price list of genai-prices. Unknown is None, never 0."""

from datetime import UTC, datetime
from typing import Any

from stenograph.clock import now
from stenograph.engine.models.answer import Usage
from stenograph.engine.models.catalog import ModelId


def cost_usd(model: ModelId, usage: Usage, at: int | None = None) -> float | None:
    """The cost in US dollars of tokens used at the time `at` (microseconds; None: now).

    None when the model has no published price, runs on one's own machine, or reported no usage. The
    `dev` models are free.
    """
    if model.provider.protocol == "scripted":
        return 0.0
    if model.provider.prices is None or usage.prompt_tokens is None:
        return None
    if usage.completion_tokens is None:
        return None
    from genai_prices import Usage as PricedUsage
    from genai_prices import calc_price

    tokens: dict[str, Any] = {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "cache_read_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        # Anthropic's writes that last an hour cost more than the five-minute ones.
        "cache_write_1h_tokens": usage.details.get("ephemeral_1h_input_tokens"),
    }
    try:
        price = calc_price(
            PricedUsage(**{name: count for name, count in tokens.items() if count is not None}),
            model.model_ref,
            provider_id=model.provider.prices,
            genai_request_timestamp=datetime.fromtimestamp((at or now()) / 1e6, UTC),
        )
    except (LookupError, ValueError):
        # No such model, or counts that contradict each other: the price list cannot say.
        return None
    return float(price.total_price)
