"""A folder that paths cannot climb out of.

Each step from the root down opens one name in the folder opened before, and follows no link that
the kernel would follow: links are read here, and lead on only inside the root. A name swapped for
a link between two steps is an error, never a way out. Hard links and mounts are part of the root.
"""

import errno
import os
import secrets
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO

from stenograph.engine.tools.result import ToolError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
#: Without `O_NONBLOCK` a named pipe would be waited for.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
#: Links followed on one way, as many as Linux follows.
_LINKS = 40
#: Names of a path: each is a step, and `..` goes all of them again.
_DEEPEST = 2_048


class OutsideError(ToolError):
    """The path leads out of the root."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path!r} leads out of the root folder")


@dataclass(frozen=True, slots=True)
class Root:
    """A root folder: `path` without links, `spellings` of it that absolute paths may begin with."""

    path: str
    spellings: tuple[str, ...]

    def parts(self, path: str) -> list[str]:
        """Return the names of a path below the root, `..` among them; raises `OutsideError`."""
        if not path.startswith("/"):
            return _names(path)
        names = _names(path)
        for spelling in self.spellings:
            start = _names(spelling)
            if names[: len(start)] == start:
                return names[len(start) :]
        raise OutsideError(path)

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Open a folder; the descriptor is closed in the end."""
        with self._parent(path) as (parent, name):
            fd = os.open(name, _FOLDER, dir_fd=parent)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def file(self, path: str) -> Iterator[BinaryIO]:
        """Open a regular file for reading; raises `ToolError` for everything else."""
        with self._parent(path) as (parent, name):
            _permissions(parent, name, path)
            fd = os.open(name, _FILE, dir_fd=parent)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ToolError(f"{path} is no regular file")
            yield file

    def is_folder(self, path: str) -> bool:
        """Tell whether a path is a folder; raises `OSError` if nothing is there."""
        with self._parent(path) as (parent, name):
            return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)

    def replace(self, path: str, data: bytes, stopped: Callable[[], bool]) -> bool:
        """Put a file in place, whole or not at all, and return whether one was there.

        Missing folders are made; permissions of a file that was there are kept.
        """
        with self._parent(path, make=True) as (parent, name):
            mode = _permissions(parent, name, path)
            if mode is not None and not mode & 0o222:
                raise ToolError(f"{path} is write-protected")
            fresh = f".steno-{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            fd = os.open(fresh, flags, 0o666, dir_fd=parent)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    if mode is not None:
                        os.fchmod(fd, mode)
                if stopped():
                    raise ToolError("Stopped before anything was changed")
                os.rename(fresh, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(fresh, dir_fd=parent)
                raise
        return mode is not None

    @contextmanager
    def _parent(self, path: str, make: bool = False) -> Iterator[tuple[int, str]]:
        fd, name = self._walk(path, make)
        try:
            yield fd, name
        finally:
            os.close(fd)

    def _walk(self, path: str, make: bool) -> tuple[int, str]:
        """Open the folder that holds a path's last name, which was no link a moment ago."""
        to_go = deque(self.parts(path))
        done: list[str] = []
        links = 0
        fd = self._open()
        try:
            while to_go:
                name = to_go.popleft()
                if name == "..":
                    if not done:
                        raise OutsideError(path)
                    # From the root again: the open folder may have been moved out of it.
                    to_go.extendleft(reversed(done[:-1]))
                    done, fd = [], _instead(fd, self._open())
                    continue
                target = _target(fd, name)
                if target is not None:
                    links += 1
                    if links > _LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                    if target.startswith("/"):
                        done, fd = [], _instead(fd, self._open())
                    to_go.extendleft(reversed(self._link_parts(target, path)))
                elif not to_go:
                    return fd, name
                else:
                    fd = _instead(fd, _step(fd, name, make))
                    done.append(name)
            return fd, "."
        except BaseException:
            os.close(fd)
            raise

    def _link_parts(self, target: str, path: str) -> list[str]:
        try:
            return self.parts(target)
        except OutsideError:
            # Where a link leads to outside is not the model's to know.
            raise OutsideError(path) from None

    def _open(self) -> int:
        try:
            return os.open(self.path, _FOLDER)
        except OSError as problem:
            raise ToolError(f"The root folder cannot be opened: {problem.strerror}") from None


def at(path: str | os.PathLike[str]) -> Root:
    """Return the root at a folder's path; raises `ToolError` if there is no folder."""
    given = os.path.abspath(path)
    real = os.path.realpath(given)
    if not os.path.isdir(real):
        raise ToolError(f"There is no folder {given}")
    return Root(real, tuple({real: None, given: None}))


def _names(path: str) -> list[str]:
    if "\x00" in path:
        raise ToolError("A path cannot hold a NUL character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ToolError(f"{path!r} is no path: it is not valid Unicode") from None
    names = [name for name in path.split("/") if name not in ("", ".")]
    if len(names) > _DEEPEST:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return names


def _target(fd: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=fd)
    except OSError as problem:
        if problem.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _step(fd: int, name: str, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=fd)
    return os.open(name, _FOLDER, dir_fd=fd)


def _instead(old: int, new: int) -> int:
    os.close(old)
    return new


def _permissions(parent: int, name: str, path: str) -> int | None:
    """Return the permission bits of a regular file, None if nothing is there."""
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a folder")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{path} is no regular file")
    return stat.S_IMODE(mode)
