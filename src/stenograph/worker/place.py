"""Where a call works: the root, or a folder beneath it."""

import hashlib
import os
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from stenograph.engine.tools import root as roots
from stenograph.engine.tools.result import ToolError
from stenograph.engine.tools.toolbox import LocalToolbox, local
from stenograph.engine.tools.workplace import Limits, Permissions
from stenograph.errors import InvalidInputError
from stenograph.worker.wire import Claim


@dataclass(frozen=True, slots=True)
class Place:
    """A root: its real path, what it may be used for, and how much of it a call may take."""

    path: str
    permissions: Permissions
    limits: Limits
    #: Of all calls together: each has a toolbox of its own, for its environment.
    changing: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def toolbox(self, claim: Claim) -> LocalToolbox:
        """Return the tools for a call; raises `ToolError` if it has no place here."""
        root = roots.at(self.path)
        if root.path != self.path:
            raise ToolError("The root folder is another one than when this worker was started")
        folder = _beneath(root, claim.workspace_path)
        box = local(folder, self.permissions, claim.environment, self._limits(claim.timeout_ms))
        return replace(box, place=replace(box.place, changing=self.changing))

    def _limits(self, timeout_ms: int | None) -> Limits:
        if timeout_ms is None:
            return self.limits
        most = max(timeout_ms / 1000, 0.001)
        return replace(
            self.limits,
            timeout=min(self.limits.timeout, most),
            longest_timeout=min(self.limits.longest_timeout, most),
        )


def real(folder: Path) -> str:
    """Return a folder's path without links, by which a worker knows its root."""
    return os.path.realpath(folder.expanduser())


def existing(folder: Path) -> str:
    """Return it of a folder that is there; raises `InvalidInputError` for others."""
    path = real(folder)
    if not os.path.isdir(path):
        raise InvalidInputError(f"There is no folder {folder}", code="invalid_root")
    return path


def fingerprint(path: str) -> str:
    """Return what a server knows a root by: SHA-256 of its real path, in hexadecimal."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()


def _beneath(root: roots.Root, workspace: str | None) -> str:
    if not workspace:
        return root.path
    try:
        with root.folder(workspace):
            pass
    except FileNotFoundError:
        raise ToolError(f"There is no folder {workspace!r} in the root folder") from None
    except NotADirectoryError:
        raise ToolError(f"{workspace!r} in the root folder is no folder") from None
    path = os.path.realpath(os.path.join(root.path, *root.parts(workspace)))
    if os.path.commonpath([path, root.path]) != root.path:
        raise roots.OutsideError(workspace)
    return path
