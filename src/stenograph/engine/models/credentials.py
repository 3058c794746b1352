"""What opens a provider's door: the server's own from the environment, or an organization's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stenograph.engine.models.catalog import PROVIDERS, Provider


@dataclass(frozen=True, slots=True)
class Credentials:
    """The members a provider needs of these, and no others; secrets stay out of any `repr`.

    `base_url` replaces the provider's own; the AWS members are Bedrock's, where `api_key` is its
    bearer key; `script` is a file of scenes for the `dev` models (`scripted.py`).
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    aws_access_key_id: str | None = field(default=None, repr=False)
    aws_secret_access_key: str | None = field(default=None, repr=False)
    aws_session_token: str | None = field(default=None, repr=False)
    aws_region: str | None = None
    script: Path | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must be seen nowhere."""
        held = (self.api_key, self.aws_secret_access_key, self.aws_session_token)
        return tuple(value for value in held if value)


_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "mistral": ("MISTRAL_API_KEY",),
    "groq": ("GROQ_API_KEY",),
}


def from_environment(
    environment: Mapping[str, str], provider_id: str, endpoints: Mapping[str, str]
) -> Credentials:
    """The server's own credentials for a provider.

    Keys come from the variables that the providers' own tools read; `STENO_<PROVIDER>_API_KEY` and
    `STENO_<PROVIDER>_BASE_URL` win over them, and serve the `endpoints` of the settings too.
    """
    prefix = f"STENO_{provider_id.upper().replace('-', '_')}_"
    names = (f"{prefix}API_KEY", *_KEYS.get(provider_id, ()))
    key = next((environment[name] for name in names if environment.get(name)), None)
    base_url = environment.get(f"{prefix}BASE_URL") or endpoints.get(provider_id)
    if provider_id == "bedrock":
        return Credentials(
            api_key=key,
            base_url=base_url,
            aws_access_key_id=environment.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=environment.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=environment.get("AWS_SESSION_TOKEN"),
            aws_region=environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"),
        )
    script = environment.get("STENO_DEV_SCRIPT") if provider_id == "dev" else None
    return Credentials(api_key=key, base_url=base_url, script=Path(script) if script else None)


def suffice(provider: Provider, credentials: Credentials) -> bool:
    """Whether a request can be made with these; `agent_model_key_missing` is the error if not."""
    if provider.protocol == "bedrock":
        signed = credentials.aws_access_key_id and credentials.aws_secret_access_key
        return bool(credentials.api_key or signed)
    if provider.needs_key and not credentials.api_key:
        return False
    return provider.id in PROVIDERS or credentials.base_url is not None
