"""What a v3 API key may do (reason-api.md section 1)."""

from collections.abc import Iterable

from stenograph.errors import InvalidInputError

SCOPES: tuple[str, ...] = (
    "run", "mcp:read", "mcp:write", "secrets:read", "secrets:write", "sessions:read",
    "sessions:debug", "knowledge:read", "memory:read", "memory:write", "skills:read",
    "skills:write", "repos:read", "repos:write", "reviews:read", "reviews:write",
    "deployment:read", "analytics:read", "org:read", "org:write", "attachments:read",
    "attachments:write", "guardrails:read", "guardrails:write", "network:read", "network:write",
    "automations:read", "automations:write", "agent_auth:read",
    "devices:read", "devices:write", "devices:use",
)  # fmt: skip

#: Never in a key that did not ask for them.
OPT_IN = frozenset({"network:read", "network:write"})
#: Only owners and admins may hold these; one who is demoted loses them at once.
PRIVILEGED = frozenset({"sessions:debug", "network:write"})

ALL = frozenset(SCOPES)


def default(role: str | None) -> frozenset[str]:
    """Return what a key holds when nothing else was asked for."""
    return held(ALL - OPT_IN, role)


def held(scopes: Iterable[str], role: str | None) -> frozenset[str]:
    """Return those of `scopes` that a person of this role may use."""
    kept = frozenset(scopes)
    return kept if role in ("owner", "admin") else kept - PRIVILEGED


def parse(names: Iterable[str]) -> frozenset[str]:
    """Read scopes by name; an unknown one is an `InvalidInputError`."""
    wanted = frozenset(names)
    if unknown := sorted(wanted - ALL):
        raise InvalidInputError(f"Unknown scope: {unknown[0]}", code="invalid_scope")
    return wanted


def listed(scopes: Iterable[str]) -> list[str]:
    """Return scopes in the order of the documentation."""
    kept = frozenset(scopes)
    return [scope for scope in SCOPES if scope in kept]
