"""What can go wrong, by class."""

from collections.abc import Mapping
from typing import Any


class Error(Exception):
    """The base of all of them.

    `code` is the server's word for machines, `details` what else its body said, `status` the HTTP
    status, `request_id` the header `X-Request-Id`; each None or empty where there was none.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.details = dict(details or {})
        self.status = status
        self.retry_after = retry_after
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.code else self.message


class Unauthorized(Error):
    """401: the key is not one of a member, or not any more."""


class Forbidden(Error):
    """403: you see it, and may not do this."""


class NotFound(Error):
    """404: it is not there, or not for you."""


class Conflict(Error):
    """409: not in the state that it is in."""


class ContentTooLarge(Error):
    """413: the body is larger than the server takes."""


class RateLimited(Error):
    """429: too many requests; `retry_after` seconds are to be waited."""


class InvalidRequest(Error):
    """Every other 4xx, with the `code` that says which.

    Of a candidate whose details were collected it is 410 with `execution_details_pruned`.
    """


class ServerError(Error):
    """5xx: the server failed, or is not there at the moment."""


class ConnectionFailed(Error):
    """There was no answer, or half of one; whether the request was heard is not known."""


class MalformedResponse(Error):
    """The answer is not one that the contract has."""


class FeedExpired(Error):
    """Events behind the feed's cursor are gone.

    What they said is in the record: read it anew from `conversation.fetch()` on, whose
    `latest_event_cursor` is where a new feed begins.
    """


_CLASSES: dict[int, type[Error]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: ContentTooLarge,
    429: RateLimited,
}


def of_status(status: int) -> type[Error]:
    """Return the class for a status that is not the expected one."""
    if status in _CLASSES:
        return _CLASSES[status]
    if 400 <= status < 500:
        return InvalidRequest
    return ServerError if status >= 500 else MalformedResponse


def is_passing(error: Error) -> bool:
    """Tell whether the same request may do later: nobody answered, or not at the moment."""
    return isinstance(error, ConnectionFailed | RateLimited) or error.status in (502, 503, 504)
