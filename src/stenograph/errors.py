"""The errors of the domain. They know nothing of HTTP: each family maps them to its own shapes.

`code` is the machine word a client branches on (agent-api.md 1.2, reason-api.md 1), `message` a
sentence for the person who reads it, `details` what else the wire shape of that code carries.
"""

from typing import Any


class StenographError(Exception):
    """Base of everything this project raises on purpose."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.details = details


class InvalidInputError(StenographError):
    """What was sent cannot be read: a parameter, a body, a cursor, a file."""

    code = "parameter_invalid"


class NotFoundError(StenographError):
    """It is not there, or the caller may not know that it is."""

    code = "not_found"


class ForbiddenError(StenographError):
    """The caller sees it, and may not do this to it."""

    code = "not_authorized"


class UnauthorizedError(StenographError):
    """No credential, or one that is unknown, expired, revoked or of the other plane."""

    code = "unauthorized"


class ConflictError(StenographError):
    """The state of the thing does not allow this."""

    code = "conflict"


class RefusedError(StenographError):
    """Well formed, and refused by a rule of the domain."""

    code = "validation_failed"


class GoneError(StenographError):
    """It was there, and retention deleted it (agent-api.md 6)."""

    code = "execution_details_pruned"

    def __init__(self) -> None:
        super().__init__("Execution details have expired under this account's retention policy")


class TooLargeError(StenographError):
    """Larger than this server takes."""

    code = "content_too_large"


class TooManyRequestsError(StenographError):
    """Over the rate limit; `retry_after` is in whole seconds, at least 1."""

    code = "rate_limited"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after
