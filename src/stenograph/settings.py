"""Every setting, its default, and one sentence on what it does.

Each is read from the environment variable `STENO_<NAME>` (`STENO_DATA`, `STENO_PORT`, …);
an option of the command line wins over it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from stenograph.errors import InvalidInputError

MIB = 2**20


def _default_data() -> Path:
    return Path.home() / ".stenograph"


@dataclass(frozen=True, slots=True)
class Settings:
    """What this server was told; times and sizes carry their unit in the name."""

    #: The folder that holds the database file, the keys of the first start and the sealing key.
    data: Path = field(default_factory=_default_data)
    #: The database as a URL, `sqlite:///…` or `postgresql://…`; empty: `steno.db` in `data`.
    database: str | None = None
    #: The address to listen on.
    host: str = "127.0.0.1"
    #: The port to listen on; 0 takes a free one.
    port: int = 8642
    #: The 32-byte key that seals secrets, in base64; empty: the file `key` in `data`.
    key: str | None = None
    #: The slug of the organization that the first start makes.
    organization: str = "default"
    #: Requests a minute that one credential of the Agent API may make per kind of resource.
    agent_requests_per_minute: int = 6_000
    #: How many times that budget one IP address may use, over all its credentials.
    agent_address_factor: int = 100
    #: Requests a minute that one v3 API key may make.
    v3_requests_per_minute: int = 6_000
    #: The largest JSON body taken, in bytes.
    max_body_bytes: int = 64 * MIB
    #: The largest import taken, in bytes.
    max_import_bytes: int = 2_048 * MIB
    #: The model that answers where nobody chose one, as `provider/model`.
    model: str = "dev/thinker"
    #: Whom to ask when a model has failed for good: `a/b=c/d,e/f;…`, each as `provider/model`.
    fallbacks: str = ""
    #: OpenAI-compatible servers by a name of their own, `name=url name=url …` (Ollama, vLLM, …).
    endpoints: str = ""
    #: Whether administrators may set up MCP servers that are commands run on this machine: 1 or 0.
    mcp_stdio: bool = False
    #: How long a stream of events is served before its client has to take it up again, in seconds.
    stream_seconds: int = 3_600
    #: When a server prunes expired details each day, `HH:MM` in UTC; empty: never.
    prune_at: str = "03:00"
    #: What is logged: `debug`, `info`, `warning` or `error`, and all above it.
    log_level: str = "info"
    #: How it is logged: `text` for people, `json` for machines.
    log_format: str = "text"


_LAST_PORT = 65_535
_INTEGERS = frozenset(f.name for f in fields(Settings) if f.type is int)
_SWITCHES = frozenset(f.name for f in fields(Settings) if f.type is bool)
_POSITIONS = {"1": True, "true": True, "0": False, "false": False}


def from_environment(environment: Mapping[str, str], **options: Any) -> Settings:
    """Read the settings; `options` that are not None win.

    Raises `InvalidInputError` for a number or a switch that is none, naming the variable.
    """
    values: dict[str, Any] = {}
    for setting in fields(Settings):
        variable = f"STENO_{setting.name.upper()}"
        if setting.name == "database":
            variable = "STENO_DATABASE_URL"
        text = environment.get(variable, "")
        if text:
            values[setting.name] = _parse(setting.name, variable, text)
    values |= {name: value for name, value in options.items() if value is not None}
    values["data"] = Path(values.get("data", _default_data())).expanduser().absolute()
    if not 0 <= values.get("port", 0) <= _LAST_PORT:
        raise InvalidInputError("STENO_PORT must be 0 to 65535", code="invalid_setting")
    return Settings(**values)


def _parse(name: str, variable: str, text: str) -> Any:
    if name in _SWITCHES:
        if text not in _POSITIONS:
            raise InvalidInputError(f"{variable} must be 1 or 0", code="invalid_setting")
        return _POSITIONS[text]
    if name not in _INTEGERS:
        return text
    if not (text.isascii() and text.isdigit()):
        raise InvalidInputError(f"{variable} must be a whole number", code="invalid_setting")
    return int(text)
