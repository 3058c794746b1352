"""The images and audio of an exported session: where they go, and where they may not.

Their names came with somebody's log. One that was made to lie in wait, such as `.ssh/config`, or
that would replace a file of the person who exports, must not be written.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from stenograph.errors import ConflictError
from stenograph.storage.database import Tx
from stenograph.trajectories.export import store
from stenograph.trajectories.redaction.redactor import Redactor


def write(
    tx: Tx, conversation_id: int, document: Path, redactor: Redactor, secrets: Redactor
) -> list[str]:
    """Write them beside `document`, under the names that `redactor` gave them in it.

    Returns a sentence for each that is left out; one is in which `secrets` finds something, for it
    cannot be masked and stay a file of its kind. Raises ConflictError, before anything is written,
    where a file is there with another content.
    """
    folder = Path(os.path.realpath(document.parent))
    targets: dict[str, Path] = {}
    left_out = []
    for path, data in _files(tx, conversation_id):
        name = redactor.reference(path)
        target = Path(os.path.realpath(folder / name))
        if reason := _refusal(name, target, folder):
            left_out.append(f"{name} is left out: {reason}")
        elif not secrets.clean(data):
            left_out.append(f"{name} is left out: it holds a secret")
        elif target == folder / document.name or not _is_free(target, data):
            raise ConflictError(
                f"{target} is there with another content; export into another folder",
                code="file_exists",
            )
        else:
            targets[path] = target
    for path, data in _files(tx, conversation_id):
        if path in targets and not targets[path].exists():
            targets[path].parent.mkdir(parents=True, exist_ok=True)
            targets[path].write_bytes(data)
    return left_out


def _files(tx: Tx, conversation_id: int) -> Iterator[tuple[str, bytes]]:
    everyone = store.shown(tx, conversation_id)
    for path in store.media_paths(tx, everyone):
        if found := store.media(tx, everyone, path):
            yield path, found[1]


def _refusal(name: str, target: Path, folder: Path) -> str | None:
    if not target.is_relative_to(folder):
        return "it would lie outside the folder of the document"
    if any(part.startswith(".") for part in PurePosixPath(name).parts):
        return "its name is that of a hidden file"
    return None


def _is_free(target: Path, data: bytes) -> bool:
    return not target.exists() or (target.is_file() and target.read_bytes() == data)
