"""Files that came with what a person said: pictures as parts of its step, all in its `extra`.

A picture lies where a log's do, at `media/…`, so that whoever reads the document finds it in the
same way.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from stenograph.conversations.attachment import IMAGES, Attachment
from stenograph.trajectories.atif.format import ContentPart, MediaSource, Step

_FOLDER = "media/"


def path(public_id: str, content_type: str) -> str | None:
    """Return where a document finds a file; None: it is no picture, and no part of a step."""
    if content_type not in IMAGES:
        return None
    return f"{_FOLDER}{public_id}.{content_type.partition('/')[2]}"


def public_id(path: str) -> str:
    """Return the public id of the file that `path` gave this path."""
    return path.removeprefix(_FOLDER).partition(".")[0]


def attach(step: Step, files: Sequence[Attachment]) -> None:
    """Put files into the step of what they came with."""
    pictures = [
        ContentPart("image", source=MediaSource(file.content_type, where))
        for file in files
        if (where := path(file.public_id, file.content_type)) is not None
    ]
    if pictures and isinstance(step.message, str):
        said = [ContentPart("text", step.message)] if step.message else []
        step.message = [*said, *pictures]
    extra: Any = step.extra
    if isinstance(extra, Raw):
        extra = msgspec.json.decode(extra)
    own = (extra or {}).get("stenograph")
    listed = [msgspec.to_builtins(file) for file in files]
    step.extra = {
        **(extra or {}),
        "stenograph": {**(own if isinstance(own, dict) else {}), "attachments": listed},
    }
