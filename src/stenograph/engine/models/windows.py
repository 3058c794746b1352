"""How many tokens a model's request and answer may have together."""

from functools import lru_cache

from stenograph.engine.models import scenes
from stenograph.engine.models.catalog import ModelId

#: For a model of which nobody says it: what nearly every model of today takes.
UNKNOWN = 128_000
#: The Gemini models since 1.5, which genai-prices names without their window.
_GEMINI = 1_048_576


def window(model: ModelId, prompt: str | None = None) -> int:
    """Return a model's window in tokens, by the list of genai-prices.

    That of a dev model stands in the scene that the running turn's `prompt` brings, so that a short
    conversation can be too long. The first call for a real provider imports the list.
    """
    if model.provider.protocol == "scripted":
        return scenes.window(prompt or "", model.model_ref)
    return _known(model)


@lru_cache(maxsize=256)
def _known(model: ModelId) -> int:
    found: int | None = None
    if model.provider.prices is not None:
        from genai_prices.data_snapshot import get_snapshot

        try:
            _, about = get_snapshot().find_provider_model(
                model.model_ref, None, model.provider.prices, None
            )
        except LookupError:
            return UNKNOWN
        found = about.context_window
    if found is None and model.model_ref.startswith("gemini-"):
        found = _GEMINI
    return found or UNKNOWN
