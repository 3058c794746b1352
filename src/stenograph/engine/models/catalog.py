"""The providers, the names of their models, and what reasoning each model can do.

A model is written `provider/model`, `provider:model` or `byok:provider:model` (reason-api.md 3);
the last says that the organization's own credential for the provider must be used.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from stenograph.errors import InvalidInputError, RefusedError

Protocol = Literal[
    "scripted",
    "anthropic",
    "openai-responses",
    "openai-chat",
    "google",
    "bedrock",
    "mistral",
    "groq",
]


@dataclass(frozen=True, slots=True)
class Provider:
    """One service: the protocol it speaks and where it listens when nothing else is said."""

    id: str
    protocol: Protocol
    base_url: str | None = None
    needs_key: bool = True
    #: The id under which genai-prices knows its prices; None: nobody publishes them.
    prices: str | None = None


PROVIDERS: Mapping[str, Provider] = {
    provider.id: provider
    for provider in (
        Provider("dev", "scripted", needs_key=False),
        Provider("anthropic", "anthropic", "https://api.anthropic.com", prices="anthropic"),
        Provider("openai", "openai-responses", "https://api.openai.com/v1", prices="openai"),
        Provider("openai-chat", "openai-chat", "https://api.openai.com/v1", prices="openai"),
        Provider("google", "google", "https://generativelanguage.googleapis.com", prices="google"),
        # AWS finds its endpoint by region, and its keys in more ways than one.
        Provider("bedrock", "bedrock", needs_key=False, prices="aws"),
        Provider("mistral", "mistral", "https://api.mistral.ai", prices="mistral"),
        Provider("groq", "groq", "https://api.groq.com", prices="groq"),
        Provider("ollama", "openai-chat", "http://127.0.0.1:11434/v1", needs_key=False),
        Provider("vllm", "openai-chat", "http://127.0.0.1:8000/v1", needs_key=False),
        Provider("llamacpp", "openai-chat", "http://127.0.0.1:8080/v1", needs_key=False),
    )
}


@dataclass(frozen=True, slots=True)
class ModelId:
    """A model by its provider's id and the provider's own name for it."""

    provider_id: str
    model_ref: str
    byok: bool = False

    def __str__(self) -> str:
        return f"{self.provider_id}/{self.model_ref}"

    @property
    def provider(self) -> Provider:
        """What is known of the provider; a named endpoint speaks the OpenAI Chat protocol."""
        known = PROVIDERS.get(self.provider_id)
        return known or Provider(self.provider_id, "openai-chat", needs_key=False)


def parse(text: str, endpoints: Collection[str] = ()) -> ModelId:
    """Read a model's name; `endpoints` are the ids of the settings' OpenAI-compatible servers.

    The provider ends at the first `/` or `:`, so the model's own name may hold both. Raises
    `InvalidInputError` `invalid_model` for another shape or a provider that nobody set up.
    """
    byok = text.startswith("byok:")
    rest = text.removeprefix("byok:")
    cut = min((at for at in (rest.find("/"), rest.find(":")) if at >= 0), default=-1)
    provider_id, model_ref = (rest[:cut], rest[cut + 1 :]) if cut > 0 else ("", "")
    if not model_ref or model_ref != model_ref.strip() or not model_ref.isprintable():
        raise InvalidInputError(
            "A model is written provider/model, provider:model or byok:provider:model",
            code="invalid_model",
        )
    if provider_id not in PROVIDERS and provider_id not in endpoints:
        raise InvalidInputError("No provider of that name is set up", code="invalid_model")
    return ModelId(provider_id, model_ref, byok)


def parse_endpoints(text: str) -> dict[str, str]:
    """Read `name=url name=url …`, the settings' OpenAI-compatible servers, as name → base URL.

    Raises `InvalidInputError` `invalid_setting` for a pair that is none.
    """
    endpoints: dict[str, str] = {}
    for pair in text.replace(",", " ").split():
        name, _, url = pair.partition("=")
        if not name or not url.startswith(("http://", "https://")) or set(name) & set("/:"):
            raise InvalidInputError(
                f"An endpoint is written name=http://…, not {pair!r}", code="invalid_setting"
            )
        endpoints[name] = url
    return endpoints


@dataclass(frozen=True, slots=True)
class Ability:
    """What reasoning a model can do; `enabled_by_default` is None where the provider decides."""

    supported: bool = False
    can_be_disabled: bool = False
    enabled_by_default: bool | None = None
    efforts: frozenset[str] = frozenset()
    default_effort: str | None = None


@dataclass(frozen=True, slots=True)
class Effective:
    """The reasoning settings that an invocation freezes (agent-api.md 4.2)."""

    reasoning_enabled: bool | None = None
    reasoning_effort: str | None = None


_DEV = {
    "thinker": Ability(
        supported=True,
        can_be_disabled=True,
        enabled_by_default=True,
        efforts=frozenset({"low", "medium", "high"}),
        default_effort="medium",
    ),
    "small": Ability(),
}


@lru_cache(maxsize=256)
def ability(model: ModelId) -> Ability:
    """What reasoning the model can do. The first call for a real provider imports pydantic-ai."""
    if model.provider.protocol != "scripted":
        from stenograph.engine.models.profiles import reasoning_ability

        return reasoning_ability(model)
    if model.model_ref not in _DEV:
        raise InvalidInputError("dev has no model of that name", code="invalid_model")
    return _DEV[model.model_ref]


def effective(
    model: ModelId, reasoning_enabled: bool | None, reasoning_effort: str | None
) -> Effective:
    """Turn the two intents into what the model will do; null asks for the model's default.

    Reasoning that a model cannot switch off stays on, a model without reasoning reports neither,
    and an effort switches reasoning on unless it is switched off. Raises `RefusedError`
    `unsupported_reasoning_effort`; `none` is no effort of any model.
    """
    can = ability(model)
    if reasoning_effort is not None and reasoning_effort not in can.efforts:
        offered = ", ".join(sorted(can.efforts)) or "none"
        raise RefusedError(
            f"The model takes no such reasoning effort; it takes: {offered}",
            code="unsupported_reasoning_effort",
        )
    if not can.supported:
        return Effective()
    if reasoning_enabled is False and can.can_be_disabled:
        return Effective(reasoning_enabled=False)
    asked = reasoning_enabled or reasoning_effort is not None or not can.can_be_disabled
    enabled = True if asked else can.enabled_by_default
    effort = None if enabled is False else reasoning_effort or can.default_effort
    return Effective(enabled, effort)
