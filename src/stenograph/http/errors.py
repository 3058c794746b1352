"""Errors as they leave: each in its family's shape, with its status (agent-api.md 1.2,
reason-api.md 1). What nobody foresaw is a 500 that tells nothing, and is logged."""

import sqlite3
import sys
from typing import Any, Literal, TypeAlias

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException

from stenograph.errors import (
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StenographError,
    TooLargeError,
    TooManyRequestsError,
    UnauthorizedError,
)
from stenograph.http.masking import mask_text
from stenograph.storage.sealing import plain_texts

Family: TypeAlias = Literal["agent", "v3", "platform"]
log = structlog.get_logger("stenograph.http")

CHALLENGE = 'Bearer realm="stenograph"'

_STATUSES: dict[type[StenographError], int] = {
    InvalidInputError: 400,
    UnauthorizedError: 401,
    ForbiddenError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    GoneError: 410,
    TooLargeError: 413,
    RefusedError: 422,
    TooManyRequestsError: 429,
}

#: The Agent API's codes whose status is not 422 (agent-api.md 1.2).
_AGENT_CODES: dict[str, int] = {
    **dict.fromkeys(
        ("bad_request", "parameter_missing", "parameter_invalid", "idempotency_key_required"), 400
    ),
    "unauthorized": 401,
    **dict.fromkeys(
        ("not_authorized", "not_workspace_owner", "workspace_agent_identifier_mismatch",
         "memory_read_only"),
        403,
    ),
    **dict.fromkeys(
        ("not_found", "memory_not_found", "prompt_document_not_found", "request_not_sealed",
         "runner_not_found"),
        404,
    ),
    **dict.fromkeys(
        ("stale_object", "idempotency_envelope_mismatch", "stale_claim", "already_claimed",
         "not_addressed_here", "not_claimable_kind", "not_eligible", "task_not_claimable",
         "conversation_archived", "subagent_follows_parent", "conversation_busy",
         "input_queue_full", "stale_context", "stale_timeline", "steering_target_changed",
         "variant_not_forkable", "steering_held", "queue_changed", "branch_required",
         "unsupported_turn_type", "variant_not_active", "variant_active", "apex_never_conceals",
         "not_terminal", "slot_occupied", "apex_only", "steering_holds", "run_live",
         "kernel_authored", "kernel_input_immutable", "run_settled", "conversation_hosted",
         "run_needs_attention", "execution_details_pruned", "workspace_not_active",
         "transition_in_progress", "entry_limit_reached", "key_taken", "already_compacted",
         "task_not_queued", "compaction_disabled", "descendant_pinned"),
        409,
    ),
    "content_too_large": 413,
    "validation_failed": 422,
    "rate_limited": 429,
    "administrator_required": 403,
    "arm_failed": 500,
    "model_plane_unavailable": 503,
}  # fmt: skip

#: The members beside code and message that four codes carry.
_AGENT_MEMBERS = {
    "invalid_steps": ("steps",),
    "stale_revision": ("current_revision",),
    "edge_authoring_refused": ("path",),
    "conversation_hosted": ("conversation_public_id", "turn_public_id"),
}

_HTTP_CODES = {
    400: ("bad_request", "The request cannot be read"),
    404: ("not_found", "Not found"),
    405: ("method_not_allowed", "This method is not served here"),
    413: ("content_too_large", "The body is larger than this server takes"),
    503: ("unavailable", "The database cannot take this now; try again"),
}


def family(path: str) -> Family:
    """Tell by its path in whose shape a request is answered."""
    return "v3" if path == "/v3" or path.startswith("/v3/") else "agent"


def handle(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Answer any error (a Litestar exception handler)."""
    path = request.scope["path"]
    status, code, message, details = _describe(error)
    headers: dict[str, str] = {}
    if isinstance(error, TooManyRequestsError):
        headers["Retry-After"] = str(error.retry_after)
    if status == 503:
        headers["Retry-After"] = "1"
    if status == 405 and isinstance(error, HTTPException) and error.headers:
        headers["Allow"] = error.headers["allow"]
    if family(path) == "v3":
        body = v3_body(status, code, message, details)
    else:
        status, body = agent_body(error, status, code, message, details)
        if status == 401:
            headers["WWW-Authenticate"] = CHALLENGE
    if status >= 500:
        _report(request, error, status)
    return Response(body, status_code=status, headers=headers, media_type="application/json")


def _describe(error: Exception) -> tuple[int, str, str, dict[str, Any]]:
    """Return status, code, message and details."""
    if isinstance(error, StenographError):
        # A pointer names keys of what was sent, and a key may hold a secret like any text.
        message = mask_text(error.message, tuple(plain_texts.get() or ()))
        for kind in type(error).__mro__:
            if kind in _STATUSES:
                return _STATUSES[kind], error.code, message, error.details
    if isinstance(error, HTTPException) and error.status_code in _HTTP_CODES:
        return error.status_code, *_HTTP_CODES[error.status_code], {}
    if _is_collision(error):
        return 409, "stale_object", "It was changed by another request at the same moment", {}
    if _is_out_of_range(error):
        return 400, "bad_request", "A number is out of range", {"pointer": ""}
    if _is_unavailable(error):
        return 503, *_HTTP_CODES[503], {}
    return 500, "internal_error", "Something went wrong here, and was logged", {}


def agent_body(
    error: Exception, status: int, code: str, message: str, details: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    """The Agent API's envelope. The code decides the status, except where 404 or 410 hide it."""
    match status:
        case 401:
            code, message = "unauthorized", "Unauthorized"
        case 404 if _AGENT_CODES.get(code) != 404:
            code, message = "not_found", "Not found"
        case 403 if _AGENT_CODES.get(code) != 403:
            code = "not_authorized"
        case 400 if _AGENT_CODES.get(code) != 400:
            code = "parameter_invalid"
        case 409 | 422 | 500:
            status = _AGENT_CODES.get(code, status)
    members = {name: details[name] for name in _AGENT_MEMBERS.get(code, ()) if name in details}
    return status, {"error": {"code": code, "message": message, **members}}


def v3_body(status: int, code: str, message: str, details: dict[str, Any]) -> dict[str, Any]:
    """The v3 body: a bare code for what is not there or badly asked, as the seeds show it."""
    match status:
        case 401:
            return {"error": "missing_bearer", "message": "Authorization required"}
        case 403 if code == "missing_scope":
            return {"error": code, "required_scope": details["required_scope"]}
        case 403 if code == "not_authorized":
            code = "forbidden"
        case 404:
            return {"error": code}
        case 413:
            code = "request_too_large"
        case 429:
            return {"error": {"type": "rate_limited", "message": message}}
        case 400 if "parameter" in details:
            return {"error": f"invalid_{details['parameter']}"}
        case 400 if code in ("bad_request", "parameter_invalid", "parameter_missing"):
            code = "invalid_request"
        case 400 if code in ("invalid_cursor", "invalid_format", "prompt_required"):
            return {"error": code}
        case 400:
            pass
    return {"error": code, "message": message}


def _is_collision(error: Exception) -> bool:
    """Two requests made the same thing, or one used what the other deleted."""
    if isinstance(error, sqlite3.IntegrityError):
        return error.sqlite_errorname.endswith(("_UNIQUE", "_PRIMARYKEY", "_FOREIGNKEY"))
    return type(error).__name__ in ("UniqueViolation", "ForeignKeyViolation")


def _is_out_of_range(error: Exception) -> bool:
    """A whole number that no column holds (SQLite's driver and PostgreSQL say it differently)."""
    return isinstance(error, OverflowError) or type(error).__name__ == "NumericValueOutOfRange"


def _is_unavailable(error: Exception) -> bool:
    """The database is busy, gone, or out of space: nothing was changed, later may do."""
    if isinstance(error, sqlite3.OperationalError):
        return True
    psycopg, pool = sys.modules.get("psycopg"), sys.modules.get("psycopg_pool")
    kinds = [m.OperationalError for m in (psycopg,) if m] + [m.PoolTimeout for m in (pool,) if m]
    return isinstance(error, tuple(kinds))


def _report(request: Request[Any, Any, Any], error: Exception, status: int) -> None:
    """Log where it happened. The message is left out, for drivers put values into theirs."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    log.error(
        "request failed",
        status=status,
        method=request.scope["method"],
        route=request.scope.get("path_template"),
        error=f"{type(error).__module__}.{type(error).__qualname__}",
        at=frames[-8:],
    )
