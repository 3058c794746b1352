"""The Python client of the Agent API (docs/client.md). It imports nothing of the server."""

from stenograph.client.client import AsyncClient, Client
from stenograph.client.errors import (
    Conflict,
    ConnectionFailed,
    ContentTooLarge,
    Error,
    FeedExpired,
    Forbidden,
    InvalidRequest,
    MalformedResponse,
    NotFound,
    RateLimited,
    ServerError,
    Unauthorized,
)
from stenograph.client.following import Feed
from stenograph.client.sending import Retries

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "ContentTooLarge",
    "Error",
    "Feed",
    "FeedExpired",
    "Forbidden",
    "InvalidRequest",
    "MalformedResponse",
    "NotFound",
    "RateLimited",
    "Retries",
    "ServerError",
    "Unauthorized",
]
