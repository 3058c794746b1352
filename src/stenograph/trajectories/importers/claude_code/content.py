"""Content blocks of the Messages API as ATIF content, with images taken out as media."""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from stenograph.trajectories.atif.format import Content, ContentPart, Json, MediaSource
from stenograph.trajectories.atif.media import IMAGES, file_name
from stenograph.trajectories.importers.draft import Media


@dataclass(slots=True)
class Gathered:
    """What turns up beside the steps while a session is read."""

    media: dict[str, Media] = field(default_factory=dict)
    kept_aside: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    replaced_characters: int = 0

    def keep_aside(self, kind: str, count: int = 1) -> None:
        if count:
            self.kept_aside[kind] = self.kept_aside.get(kind, 0) + count


def as_json(value: Json) -> str:
    """Return the canonical JSON text of a value: keys sorted, no spaces."""
    return msgspec.json.encode(value, order="sorted").decode()


def blocks(content: Json) -> list[dict[str, Json]]:
    """Return content as a list of blocks, whatever form the log gave it."""
    if content is None:
        return []
    values = content if isinstance(content, list) else [content]
    return [
        value if isinstance(value, dict) and isinstance(value.get("type"), str)
        else {"type": "text", "text": value if isinstance(value, str) else as_json(value)}
        for value in values
    ]  # fmt: skip


def joined(parts: Iterable[ContentPart]) -> Content:
    """Return parts as content: a plain string where one text says it all."""
    every = list(parts)
    if not every:
        return ""
    if len(every) == 1 and every[0].text is not None:
        return every[0].text
    return every


def part(block: dict[str, Json], gathered: Gathered) -> ContentPart:
    """Return a text or image block as a part; any other as its JSON text."""
    text = block.get("text")
    if block["type"] == "text" and isinstance(text, str):
        return ContentPart(type="text", text=text)
    if block["type"] == "image":
        return _image(block, gathered)
    if block["type"] == "document":
        return ContentPart(type="text", text=_document(block, gathered))
    return ContentPart(type="text", text=as_json(block))


def _image(block: dict[str, Json], gathered: Gathered) -> ContentPart:
    source = block.get("source")
    kind, data = _bytes(source)
    if data is None or kind not in IMAGES:
        url = source.get("url") if isinstance(source, dict) else None
        if not isinstance(url, str):
            gathered.warnings.append("An image could not be read; it is only in the original file")
        return ContentPart(type="text", text=f"[image {url if isinstance(url, str) else kind}]")
    path = file_name(kind, data)
    gathered.media.setdefault(path, Media(path, kind, data))
    return ContentPart(type="image", source=MediaSource(media_type=kind, path=path))


def _document(block: dict[str, Json], gathered: Gathered) -> str:
    """ATIF has no place for documents: say what it was. The bytes stay in the original file."""
    source = block.get("source")
    if isinstance(source, dict) and source.get("type") == "text":
        return str(source.get("data", ""))
    kind, data = _bytes(source)
    gathered.keep_aside("document")
    return f"[document {kind}, {len(data or b'')} bytes]"


def _bytes(source: Json) -> tuple[str, bytes | None]:
    if not isinstance(source, dict):
        return "unknown", None
    kind, data = source.get("media_type"), source.get("data")
    if not isinstance(data, str):
        return str(kind), None
    try:
        return str(kind), base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return str(kind), None
