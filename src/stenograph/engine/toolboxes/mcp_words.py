"""What MCP says, in the engine's words: names that models take, and outputs that are text."""

import hashlib
import re
from typing import Any

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

#: The longest name of a tool that every provider takes, of letters, digits, `_` and `-`.
LONGEST = 64
#: Characters of a description that models are told, and bytes of a schema that they are.
LONGEST_DESCRIPTION = 10_000
LARGEST_SCHEMA = 100_000
_STRANGE = re.compile(r"[^A-Za-z0-9_-]")


def name(server: str, tool: str) -> str:
    """Return `mcp__<server>__<tool>`: the same for the same two, another for any other two.

    What had to be changed or cut, or could be read in two ways, ends in a digest of both.
    """
    written = _STRANGE.sub("_", tool)
    plain = f"mcp__{server}__{written}"
    ambiguous = "__" in server or server.endswith("_")
    if written == tool and len(plain) <= LONGEST and not ambiguous:
        return plain
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: LONGEST - 9]}_{digest}"


def parameters(schema: Any) -> dict[str, Any] | None:
    """Return the schema of a tool's arguments, a JSON object whatever the server sent; None: it is
    too large, and would take the room of all that is said."""
    found = {"properties": {}, **(schema if isinstance(schema, dict) else {}), "type": "object"}
    # Python's JSON has numbers that no provider reads, and they become null.
    written = msgspec.json.encode(found)
    if len(written) > LARGEST_SCHEMA:
        return None
    return msgspec.json.decode(written, type=dict[str, Any])


def is_repeatable(tool: Tool) -> bool:
    """Tell whether the server says that a second call of it does no more than the first."""
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


def output(result: CallToolResult) -> str:
    """Return a result as text: its parts one after another, what is binary described, and its
    structured content as JSON unless a part says the same."""
    parts = [_part(part) for part in result.content]
    structured = result.structured_content
    if structured is not None and not any(_says(part, structured) for part in parts):
        parts.append(msgspec.json.encode(structured).decode())
    return "\n".join(parts)


def _part(part: Any) -> str:
    match part:
        case TextContent():
            return part.text
        case ImageContent():
            return f"[image: {part.mime_type}, {_size(part.data)}]"
        case AudioContent():
            return f"[audio: {part.mime_type}, {_size(part.data)}]"
        case ResourceLink():
            return f"[resource: {part.name}, {part.uri}]"
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            kind = blob.mime_type or "application/octet-stream"
            return f"[resource: {blob.uri}, {kind}, {_size(blob.blob)}]"
        case EmbeddedResource(resource=TextResourceContents() as written):
            return written.text
    return f"[{part.type}]"


def _size(base64: str) -> str:
    return f"{len(base64.rstrip('=')) * 3 // 4:,} bytes"


def _says(part: str, structured: Any) -> bool:
    """Tell whether a text is this value as JSON; a lone `result` is the value it holds."""
    meant = [structured]
    if isinstance(structured, dict) and list(structured) == ["result"]:
        meant.append(structured["result"])
    try:
        return msgspec.json.decode(part) in meant
    except (msgspec.DecodeError, RecursionError):
        return part in meant
