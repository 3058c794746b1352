"""Content items of the Responses API as ATIF content, with images taken out as media."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from stenograph.trajectories.atif.format import Content, ContentPart, Json, MediaSource
from stenograph.trajectories.atif.media import IMAGES, data_uri, file_name
from stenograph.trajectories.importers.draft import Media


@dataclass(slots=True)
class Gathered:
    """What turns up beside the steps while a log is read."""

    media: dict[str, Media] = field(default_factory=dict)
    kept_aside: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def keep_aside(self, kind: str) -> None:
        self.kept_aside[kind] = self.kept_aside.get(kind, 0) + 1


def as_json(value: Json) -> str:
    """Return the canonical JSON text of a value: keys sorted, no spaces."""
    return msgspec.json.encode(value, order="sorted").decode()


def texts(content: Json) -> list[str]:
    """Return the texts among content items, of whatever type (`input_text`, `Text`, refusal …)."""
    if isinstance(content, str):
        return [content]
    found = [
        value
        for item in (content if isinstance(content, list) else [])
        if isinstance(item, dict)
        for name in ("text", "refusal")
        if isinstance(value := item.get(name), str)
    ]
    return [text for text in found if text]


def parts(content: Json, gathered: Gathered) -> Iterator[ContentPart]:
    """Return content items as parts; one that is neither text nor image as its JSON text."""
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            yield ContentPart(type="text", text=item)
        elif isinstance(item, dict) and (found := texts([item])):
            yield ContentPart(type="text", text=found[0])
        elif isinstance(item, dict) and "image_url" in item:
            yield image(item["image_url"], gathered)
        elif not (isinstance(item, dict) and item.get("text") == ""):
            yield ContentPart(type="text", text=as_json(item))


def joined(every: Iterable[ContentPart]) -> Content:
    """Return parts as content: a plain string where one text says it all."""
    found = list(every)
    if not found:
        return ""
    if len(found) == 1 and found[0].text is not None:
        return found[0].text
    return found


def image(url: Json, gathered: Gathered) -> ContentPart:
    """Return an image as a part; one that is only an address stays an address."""
    if isinstance(url, dict):
        url = url.get("url")
    if not isinstance(url, str):
        return ContentPart(type="text", text="[image]")
    kind = url.removeprefix("data:").partition(";")[0].lower()
    data = data_uri(url)
    if data is None or kind not in IMAGES:
        if url.startswith("data:"):
            gathered.warnings.append("An image could not be read; it is only in the original file")
        return ContentPart(type="text", text=f"[image {kind if url.startswith('data:') else url}]")
    path = file_name(kind, data)
    gathered.media.setdefault(path, Media(path, kind, data))
    return ContentPart(type="image", source=MediaSource(media_type=kind, path=path))
