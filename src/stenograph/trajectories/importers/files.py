"""Reading files of a person who imports: whatever is wrong with one is said, never raised on.

Codex packs rollouts that were not used for a while (`.jsonl.zst`); they are read as what they were.
"""

import io
import os
import re
from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard

from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.media import is_local, path_problem

_PATH = re.compile(rb'"path"\s*:\s*("(?:[^"\\]|\\.)*")')
_START = 64 * 1024
_ZSTD = b"\x28\xb5\x2f\xfd"
#: Bytes that a packed file may come to: a small one can name any size.
_MOST = 2**30


def readable(name: str) -> str:
    """Return a file's name as text; bytes in it that are no UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read_file(path: Path) -> bytes:
    """Return a file's bytes, unpacked."""
    try:
        return unpacked(path.read_bytes(), str(path))
    except OSError as error:
        raise _unreadable(path, error) from None


def read_start(path: Path) -> bytes:
    """Return at least the first line of a file, or all of it where it has no second."""
    try:
        with path.open("rb") as file:
            packed = file.read(len(_ZSTD)) == _ZSTD
            file.seek(0)
            return _start(_reader(file) if packed else file)
    except OSError as error:
        raise _unreadable(path, error) from None
    except zstandard.ZstdError as error:
        raise InvalidInputError(f"{path} cannot be unpacked: {error}") from None


def _start(file: BinaryIO) -> bytes:
    found = file.read(_START)
    while b"\n" not in found.lstrip() and len(found) < _MOST and (more := file.read(len(found))):
        found += more
    return found


def unpacked(data: bytes, name: str) -> bytes:
    """Return bytes as they were before they were packed, if they were."""
    if not data.startswith(_ZSTD):
        return data
    try:
        found: bytes = _reader(io.BytesIO(data)).read(_MOST + 1)
    except zstandard.ZstdError as error:
        raise InvalidInputError(f"{name} cannot be unpacked: {error}") from None
    if len(found) > _MOST:
        raise InvalidInputError(f"{name} is larger than {_MOST} bytes when unpacked")
    return found


def _reader(file: BinaryIO) -> BinaryIO:
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)


def _unreadable(path: Path, error: OSError) -> InvalidInputError:
    return InvalidInputError(f"{path} cannot be read: {error.strerror}")


def read_named(folder: Path, document: bytes) -> dict[str, bytes]:
    """Return the files of a folder that a document names as a `path`, by those names.

    Nothing outside the folder is reached, by no spelling and through no link.
    """
    root = Path(os.path.realpath(folder))
    found = {}
    for quoted in set(_PATH.findall(document)):
        try:
            name = msgspec.json.decode(quoted, type=str)
        except msgspec.DecodeError:
            continue
        if path_problem(name) is None and is_local(name):
            # These functions of os answer where those of Path raise: long names, loops of links.
            path = Path(os.path.realpath(root / name))
            if path.is_relative_to(root) and os.path.isfile(path):
                found[name] = read_file(path)
    return found
