"""Build pydantic-ai's model for one call, and keep what that call sends.

Every provider's address and key are passed in full, so nothing is read from the environment on
the way: an organization's request can never be made with the server's key. The SDKs' own retries
are off, since the record counts attempts.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from stenograph.engine.models.catalog import ModelId, ability, effective
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.models.request import Settings


@dataclass(slots=True)
class Sent:
    """What went over the wire in one call: the last body, as text, and how many requests."""

    body: str = ""
    count: int = 0


_sent: ContextVar[Sent] = ContextVar("sent")


@asynccontextmanager
async def opened(model: ModelId, credentials: Credentials, sent: Sent) -> AsyncIterator[Model]:
    """The model, with a connection pool of its own that is closed at the end of the call."""
    _sent.set(sent)
    if model.provider.protocol == "bedrock":
        yield _bedrock(model, credentials)
        return
    async with _http_client(model, sent) as client:
        yield _over_http(model, credentials, client)


def native_settings(model: ModelId, settings: Settings) -> ModelSettings:
    """Our settings in pydantic-ai's words; what is not set is left to the provider."""
    can = ability(model)
    now = effective(model, settings.reasoning_enabled, settings.reasoning_effort)
    given: dict[str, Any] = {
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "parallel_tool_calls": settings.parallel_tool_calls,
        "request_timeout": settings.timeout,
        "cache": True if settings.cache else None,
        "max_retries": 0 if model.provider.protocol in _RETRIES_BY_SETTING else None,
    }
    if now.reasoning_effort is not None or now.reasoning_enabled is False:
        given["thinking"] = now.reasoning_effort or False
    elif now.reasoning_enabled and not can.enabled_by_default:
        given["thinking"] = True
    match model.provider.protocol:
        case "openai-responses":
            given["openai_store"] = False
            if can.supported and now.reasoning_enabled is not False:
                given["openai_reasoning_summary"] = settings.reasoning_summary
        case "google" if can.supported and "thinking" not in given:
            given["google_thinking_config"] = {"include_thoughts": True}
    return cast(ModelSettings, {name: it for name, it in given.items() if it is not None})


_RETRIES_BY_SETTING = frozenset({"anthropic", "google", "groq", "mistral"})
#: Protocol → where its model and provider live in pydantic-ai; imported when first asked for.
_PLACES = {
    "anthropic": ("anthropic.AnthropicModel", "anthropic.AnthropicProvider"),
    "google": ("google.GoogleModel", "google.GoogleProvider"),
    "mistral": ("mistral.MistralModel", "mistral.MistralProvider"),
    "groq": ("groq.GroqModel", "groq.GroqProvider"),
    "bedrock": ("bedrock.BedrockConverseModel", "bedrock.BedrockProvider"),
    "openai-responses": ("openai.OpenAIResponsesModel", "openai.OpenAIProvider"),
    "openai-chat": ("openai.OpenAIChatModel", "openai.OpenAIProvider"),
    "ollama": ("ollama.OllamaModel", "ollama.OllamaProvider"),
    "other": ("openai.OpenAIChatModel", "openai_compatible.OpenAICompatibleProvider"),
}


def load(model: ModelId) -> tuple[Any, Any]:
    """Import the two classes of the model's wire: its model and its provider."""
    wire: str = model.provider.protocol
    if wire == "openai-chat" and model.provider_id != "openai-chat":
        wire = "ollama" if model.provider_id == "ollama" else "other"
    model_place, provider_place = (place.split(".") for place in _PLACES[wire])
    models = import_module(f"pydantic_ai.models.{model_place[0]}")
    providers = import_module(f"pydantic_ai.providers.{provider_place[0]}")
    return getattr(models, model_place[1]), getattr(providers, provider_place[1])


def _over_http(model: ModelId, credentials: Credentials, client: Any) -> Model:
    as_model, as_provider = load(model)
    own = (model.provider_id,) if as_provider.__name__ == "OpenAICompatibleProvider" else ()
    # Where no key is asked any will do; without one the SDKs would look in the environment.
    provider = as_provider(
        *own,
        api_key=credentials.api_key or "none",
        base_url=credentials.base_url or model.provider.base_url,
        http_client=client,
    )
    told: dict[str, Any] = {}
    if model.provider.protocol == "openai-chat":
        # A stream that ends without a reason to end was cut, whatever the server means by it.
        told["profile"] = {"openai_chat_streaming_requires_finish_reason": True}
    if model.provider.protocol.startswith("openai"):
        # The SDK reads these two from the environment and takes no word to leave them out; the
        # setting `max_retries` would make it build a copy, and read them again.
        provider.client.organization = provider.client.project = None
        provider.client.max_retries = 0
    built: Model = as_model(model.model_ref, provider=provider, **told)
    return built


def _http_client(model: ModelId, sent: Sent) -> Any:
    from pydantic_ai.models import create_async_http_client, create_async_httpx2_client

    # Groq's SDK is built on the older httpx.
    create = (
        create_async_http_client
        if model.provider.protocol == "groq"
        else create_async_httpx2_client
    )
    client: Any = create()

    async def note_request(request: Any) -> None:
        sent.count += 1
        sent.body = (await request.aread()).decode(errors="replace")

    hooks = client.event_hooks
    client.event_hooks = {**hooks, "request": [*hooks["request"], note_request]}
    return client


def _bedrock(model: ModelId, credentials: Credentials) -> Model:
    as_model, as_provider = load(model)
    provider = as_provider(bedrock_client=_bedrock_client(credentials))
    built: Model = as_model(model.model_ref, provider=provider)
    return built


@lru_cache(maxsize=16)
def _bedrock_client(credentials: Credentials) -> Any:
    """A boto3 client; kept, since one takes a twentieth of a second to build, and safe to share."""
    import boto3  # type: ignore[import-untyped]
    from botocore.config import Config  # type: ignore[import-untyped]
    from botocore.session import Session  # type: ignore[import-untyped]
    from botocore.tokens import FrozenAuthToken  # type: ignore[import-untyped]

    # The way of signing is named, or botocore would take a bearer key from the environment.
    config = Config(
        retries={"total_max_attempts": 1},
        connect_timeout=10,
        read_timeout=600,
        signature_version="bearer" if credentials.api_key else "v4",
    )
    core = Session()
    if credentials.api_key:
        token = FrozenAuthToken(credentials.api_key)
        core.get_auth_token = lambda **_: token
        core.get_credentials = lambda: None
    session = boto3.Session(
        aws_access_key_id=credentials.aws_access_key_id,
        aws_secret_access_key=credentials.aws_secret_access_key,
        aws_session_token=credentials.aws_session_token,
        region_name=credentials.aws_region or "us-east-1",
        botocore_session=core,
    )
    client = session.client("bedrock-runtime", endpoint_url=credentials.base_url, config=config)
    client.meta.events.register("before-send.bedrock-runtime", _note_bedrock_request)
    return client


def _note_bedrock_request(request: Any, **_: Any) -> None:
    # Threads that boto3 is run in inherit the context of the call, so the client may be shared.
    sent = _sent.get()
    sent.count += 1
    body = request.body
    sent.body = body.decode() if isinstance(body, bytes) else json.dumps(body)
