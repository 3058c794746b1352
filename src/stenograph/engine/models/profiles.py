"""What pydantic-ai knows of the reasoning of each provider's models, in our words.

Its profiles are corrected with every release of it, so no list of models is kept here.
"""

from typing import Any

from pydantic_ai.profiles import ModelProfile

from stenograph.engine.models.catalog import Ability, ModelId

_GRADED = ("low", "medium", "high")
#: Models that take a budget of tokens take every effort, each as a budget.
_BUDGETS = ("minimal", *_GRADED, "xhigh", "max")


def reasoning_ability(model: ModelId) -> Ability:
    """Read a model's profile; a model that no profile describes has no reasoning to set."""
    profile: dict[str, Any] = {**profile_of(model)}
    always = bool(profile.get("thinking_always_enabled"))
    if not (always or profile.get("supports_thinking")):
        return Ability()
    default: bool | None = bool(always or profile.get("thinking_enabled_by_default"))
    if model.provider.protocol == "google" and not always:
        default = None  # Gemini models differ in whether they think unasked; no profile says.
    return Ability(
        supported=True,
        can_be_disabled=not always,
        enabled_by_default=default,
        efforts=frozenset(_efforts(model, profile)),
    )


def profile_of(model: ModelId) -> ModelProfile:
    """The profile that pydantic-ai's provider would use, without loading the provider's SDK."""
    from pydantic_ai.profiles import anthropic, google, groq, mistral, openai

    match model.provider.protocol:
        case "anthropic":
            return anthropic.anthropic_model_profile(model.model_ref) or {}
        case "google":
            return google.google_model_profile(model.model_ref) or {}
        case "groq":
            return groq.groq_model_profile(model.model_ref.lower())
        case "mistral":
            return mistral.mistral_model_profile(model.model_ref)
        case "bedrock":
            from pydantic_ai.providers.bedrock import BedrockProvider

            return BedrockProvider.model_profile(model.model_ref) or {}
        case _ if model.provider_id == "ollama":
            from pydantic_ai.providers.ollama import OllamaProvider

            return OllamaProvider.model_profile(model.model_ref) or {}
        case _ if model.provider.prices == "openai":
            return openai.openai_model_profile(model.model_ref)
        case _:
            from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

            return OpenAICompatibleProvider.model_profile(model.model_ref) or {}


def _efforts(model: ModelId, profile: dict[str, Any]) -> tuple[str, ...] | frozenset[str]:
    protocol = model.provider.protocol
    if protocol == "anthropic" or profile.get("bedrock_thinking_variant") == "anthropic":
        return _anthropic_efforts(profile)
    if protocol == "google":
        if not profile.get("google_supports_thinking_level", True):
            return _BUDGETS
        levels = profile.get("google_thinking_levels")
        return frozenset(level.lower() for level in levels) if levels else ("minimal", *_GRADED)
    if protocol == "groq":
        return _GRADED if profile.get("groq_supports_graded_reasoning_effort") else ()
    if protocol == "mistral":
        return ()
    if protocol == "bedrock":
        return _GRADED
    return _openai_efforts(model, profile)


def _anthropic_efforts(profile: dict[str, Any]) -> tuple[str, ...]:
    if not profile.get("anthropic_supports_effort"):
        return _BUDGETS
    higher = ("xhigh",) if profile.get("anthropic_supports_xhigh_effort") else ()
    highest = ("max",) if profile.get("anthropic_supports_max_effort", True) else ()
    return (*_GRADED, *higher, *highest)


def _openai_efforts(model: ModelId, profile: dict[str, Any]) -> tuple[str, ...] | frozenset[str]:
    accepted: frozenset[str] | None = profile.get("openai_reasoning_efforts")
    if accepted is not None:
        return accepted - {"none"}
    api = "responses" if model.provider.protocol == "openai-responses" else "chat"
    minimal = ("minimal",) if profile.get("openai_supports_minimal_reasoning_effort", True) else ()
    maximal = ("max",) if profile.get(f"openai_{api}_supports_max_reasoning_effort") else ()
    return (*minimal, *_GRADED, "xhigh", *maximal)
