"""Attachments: files that come with an input and stay with the candidate that it became.

Whoever reads the conversation may read them; one that came with a turn goes where the turn goes.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stenograph.clock import now
from stenograph.conversations import store_attachments as store
from stenograph.conversations import turn as turns
from stenograph.conversations.access import Conversation
from stenograph.conversations.limits import refused
from stenograph.errors import NotFoundError, TooLargeError
from stenograph.ids import new_id
from stenograph.storage.database import Row, Tx

#: How many files an input brings, bytes of one of them, and of all together.
FILES, BYTES, TOTAL = 20, 10 * 2**20, 32 * 2**20
#: The kinds of pictures that models look at, and how their bytes begin.
IMAGES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent."""

    filename: str
    content_type: str
    data: bytes


#: A file, or the public id of one that the conversation has.
Wanted: TypeAlias = File | str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that is kept; `byte_size` is of its bytes as they came."""

    public_id: str
    filename: str
    content_type: str
    byte_size: int


@dataclass(frozen=True, slots=True)
class Content:
    """A file with its bytes. `steer` is the public id of the input, if that went into a turn that
    ran."""

    filename: str
    content_type: str
    data: bytes
    steer: str | None = None

    @property
    def is_image(self) -> bool:
        """Whether it is a picture that models look at."""
        return self.content_type in IMAGES

    @property
    def text(self) -> str | None:
        """Its text; None if it is none."""
        if self.is_image or b"\0" in self.data:
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


def check(wanted: Sequence[Wanted]) -> None:
    """Raise `RefusedError` for files that cannot be kept, `TooLargeError` for those too large."""
    files = [it for it in wanted if isinstance(it, File)]
    if len(wanted) > FILES:
        raise refused(f"An input has at most {FILES} attachments")
    if any(len(it.data) > BYTES for it in files) or sum(len(it.data) for it in files) > TOTAL:
        raise _too_large()
    for n, file in enumerate(files):
        name = file.filename
        # Dots and spaces alone name a folder, or nothing.
        if not name.isprintable() or not name.strip(". ") or len(name) > 255 or {*name} & {*"/\\"}:
            raise refused(f"attachments/{n}: a filename is 1 to 255 characters without / and \\")
        if _TYPE.fullmatch(file.content_type) is None:
            raise refused(f"attachments/{n}: a content_type is written type/subtype, in small")
        begins = IMAGES.get(file.content_type, (b"",))
        if not file.data.startswith(begins) or not file.data:
            raise refused(f"attachments/{n}: it is empty, or no {file.content_type}")


def _too_large() -> TooLargeError:
    return TooLargeError(
        f"An attachment has at most {BYTES} bytes, those of an input {TOTAL} together"
    )


def attach(
    tx: Tx, conversation: Conversation, input_id: int, wanted: Sequence[Wanted]
) -> tuple[str, ...]:
    """Give an input exactly these files, and return their public ids. A file that something else
    has is copied; one that the input had and that is not wanted any more is deleted.

    Raises what `check` does, and `RefusedError` for a file that is not there.
    """
    check(wanted)
    own = {it.public_id: it.byte_size for it in of_inputs(tx, [input_id]).get(input_id, ())}
    kept, size = [], 0
    for it in wanted:
        if isinstance(it, str) and it in own:
            kept.append(it)
            size += own[it]
            continue
        if isinstance(it, str):
            it = _copied(tx, conversation, it)
        size += len(it.data)
        if size > TOTAL:
            raise _too_large()
        public_id = new_id()
        store.add(
            tx,
            conversation.id,
            public_id=public_id,
            input_id=input_id,
            filename=it.filename,
            content_type=it.content_type,
            byte_size=len(it.data),
            data=it.data,
            created_at=now(),
        )
        kept.append(public_id)
    for gone in own.keys() - kept:
        store.delete(tx, gone)
    return tuple(kept)


def _copied(tx: Tx, conversation: Conversation, public_id: str) -> File:
    try:
        found = read(tx, conversation, public_id)
    except NotFoundError:
        raise refused("There is no such attachment in this conversation") from None
    return File(found.filename, found.content_type, found.data)


def read(tx: Tx, conversation: Conversation, public_id: str) -> Content:
    """Return a file of the conversation: of an input that waits, or of a candidate of a turn that
    it shows, its own or inherited. Raises `NotFoundError`, also for a concealed one."""
    row = store.find(tx, public_id)
    if row is None:
        raise NotFoundError("Not found")
    owner_id, waits, turn_id, concealed, *content = row
    if turn_id is not None:
        turns.find(tx, conversation, turn_id)
    elif owner_id != conversation.id or not waits:
        raise NotFoundError("Not found")
    if concealed:
        raise NotFoundError("Not found")
    return Content(*content)


def of_inputs(tx: Tx, input_ids: Collection[int]) -> dict[int, list[Attachment]]:
    """Return the files of inputs by row id, in the order in which they were given."""
    return _grouped(store.of_inputs(tx, input_ids))


def of_variants(tx: Tx, variant_ids: Collection[int]) -> dict[int, list[Attachment]]:
    """Return the files of candidates by row id, those that steered apart."""
    return _grouped(store.of_variants(tx, variant_ids))


def _grouped(rows: Sequence[Row]) -> dict[int, list[Attachment]]:
    found: dict[int, list[Attachment]] = {}
    for owner_id, *about in rows:
        found.setdefault(owner_id, []).append(Attachment(*about))
    return found


def copy(tx: Tx, variant_id: int, copy_id: int) -> None:
    """Give a candidate the files with which another one of its turn was asked, under ids of their
    own: either may be concealed."""
    for (row_id,) in store.asked_with(tx, variant_id):
        store.copy(tx, row_id, copy_id, new_id())


def contents(tx: Tx, variant_ids: Collection[int]) -> dict[int, list[Content]]:
    """Return the files of candidates with their bytes, by row id."""
    found: dict[int, list[Content]] = {}
    for variant_id, *content in store.contents(tx, variant_ids):
        found.setdefault(variant_id, []).append(Content(*content))
    return found
