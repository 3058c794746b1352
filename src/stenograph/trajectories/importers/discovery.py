"""From paths to drafts: which files are logs, which belong together, and who reads them."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from stenograph.errors import InvalidInputError
from stenograph.trajectories.importers import atif, claude_code, codex
from stenograph.trajectories.importers.draft import SessionDraft
from stenograph.trajectories.importers.files import (
    read_file,
    read_named,
    read_start,
    readable,
    unpacked,
)
from stenograph.trajectories.importers.recognition import FORMATS, Format, is_document, recognise

_Found: TypeAlias = tuple[Format | None, str | None]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A log with the files that belong to it, or (`format` None) a file that is none, and why."""

    path: Path
    format: Format | None = None
    #: Claude Code: subagents and large outputs. Codex: the threads that this one started.
    beside: tuple[Path, ...] = ()
    reason: str | None = None


def find(paths: Iterable[Path]) -> Iterator[Candidate]:
    """Return the logs among files and folders, each once, and what in the folders is no log.

    Raises InvalidInputError (before the first is returned) for a path that is not there, and for
    a file that was named and is no log.
    """
    known: dict[Path, _Found] = {}
    groups: dict[Path, tuple[Path, ...]] = {}
    for given in paths:
        if os.path.isdir(given):
            files = list(_below(given))
            owned = claude_code.side_files(f.relative_to(given).as_posix() for f in files)
            groups |= {given / r: tuple(given / name for name in o) for r, o in owned.items()}
            known |= {file: _recognised(file) for file in files if file not in known}
        elif os.path.isfile(given):
            known[given] = _recognised(given)
            if known[given][0] is None:
                raise InvalidInputError(
                    f"{given} cannot be imported: {known[given][1]}", code="invalid_format"
                )
            groups[given] = _beside(given, known[given][0])
            if known[given][0] == "codex":
                known |= dict.fromkeys(groups[given], ("codex", None))
        else:
            raise InvalidInputError(f"There is no file or folder {given}")
    groups = {root: own for root, own in groups.items() if known[root][0] == "claude-code"}
    yield from _candidates(known, groups)


def _candidates(
    known: dict[Path, _Found], claude: dict[Path, tuple[Path, ...]]
) -> Iterator[Candidate]:
    families = _families([path for path, (format, _) in known.items() if format == "codex"])
    members = {path for family in families.values() for path in family}
    owned = {path for group in claude.values() for path in group}
    for path, (format, reason) in known.items():
        if format is None:
            if path not in owned:
                yield Candidate(path, reason=reason)
        elif path not in (members if format == "codex" else owned):
            beside = claude if format == "claude-code" else families
            yield Candidate(path, format, beside.get(path, ()))


def _below(folder: Path) -> Iterator[Path]:
    """Return the files below a folder in order; links to folders are not followed."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if os.path.isfile(path := Path(root, name)):
                yield path


def _recognised(path: Path) -> _Found:
    try:
        start = read_start(path)
        if is_document(start):
            start = read_file(path)
    except InvalidInputError as error:
        return None, error.message
    return recognise(start)


def _beside(path: Path, format: Format | None) -> tuple[Path, ...]:
    """Return the files that belong to a log that was named by itself."""
    folder = path.parent
    if format == "claude-code":
        below = _below(folder / path.stem) if path.suffix == ".jsonl" else ()
        others = [*folder.glob("agent-*"), *below]
        names = {path.name, *(f.relative_to(folder).as_posix() for f in others if f.is_file())}
        return tuple(folder / name for name in claude_code.side_files(names).get(path.name, ()))
    if format == "codex":
        return _families([path, *sorted(folder.glob("rollout-*"))]).get(path, ())
    return ()


def _families(paths: Iterable[Path]) -> dict[Path, tuple[Path, ...]]:
    """Return threads that no other one here started, each with all that came of it."""
    by_id: dict[str, Path] = {}
    parents: dict[Path, str | None] = {}
    for path in paths:
        own, parent = _identity(path)
        if own is not None and by_id.setdefault(own, path) == path:
            parents[path] = parent
    families: dict[Path, tuple[Path, ...]] = {}
    for path in parents:
        root, seen = path, {path}
        while (above := by_id.get(parents[root] or "")) is not None:
            if above in seen:  # threads that are said to have started each other
                root = path
                break
            seen.add(above)
            root = above
        if root != path:
            families[root] = (*families.get(root, ()), path)
    return families


def _identity(path: Path) -> tuple[str | None, str | None]:
    try:
        return codex.identity(read_start(path))
    except InvalidInputError:
        return None, None


def read_source(candidate: Candidate) -> list[SessionDraft]:
    """Read what `find` found: mostly one draft, with its subagents as children.

    Raises InvalidInputError where it cannot be read.
    """
    if candidate.format is None:
        raise InvalidInputError(
            f"{candidate.path} cannot be imported: {candidate.reason}", code="invalid_format"
        )
    if candidate.format == "codex":
        return _threads(candidate)
    data, folder = read_file(candidate.path), candidate.path.parent
    if candidate.format == "atif":
        files = read_named(folder, data)
        return [atif.read(data, files=files, name=readable(candidate.path.name))]
    files = {readable(f.relative_to(folder).as_posix()): read_file(f) for f in candidate.beside}
    name = readable(candidate.path.name)
    return [claude_code.read({name: data, **files}, name)]


def _threads(candidate: Candidate) -> list[SessionDraft]:
    """Read a thread and those it started; one that cannot be read costs no other."""
    drafts: list[SessionDraft] = []
    unread: list[InvalidInputError] = []
    for path in (candidate.path, *candidate.beside):
        try:
            drafts.append(codex.read(read_file(path), readable(path.name)))
        except InvalidInputError as error:
            unread.append(error)
    if not drafts:
        raise unread[0]
    drafts[0].warnings += [error.message for error in unread]
    return codex.join(drafts)


def read_bytes(data: bytes, format: str | None = None, name: str = "upload") -> list[SessionDraft]:
    """Read one file that came without a folder, as an upload does. `format` None: by its content.

    Raises InvalidInputError, with the code `invalid_format` where it is no log, or an unknown
    format was named.
    """
    if format is not None and format not in FORMATS:
        raise InvalidInputError(
            f"There is no format {format!r}; known are {', '.join(FORMATS)}", code="invalid_format"
        )
    data = unpacked(data, name)
    found, reason = recognise(data)
    if (format := format or found) is None:
        raise InvalidInputError(f"This cannot be imported: {reason}", code="invalid_format")
    if format == "codex":
        return [codex.read(data, name)]
    if format == "claude-code":
        return [claude_code.read({name: data}, name)]
    return [atif.read(data, name=name)]


def usual_folders(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folders in which the programs keep their logs, those that are there."""
    claude = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    own = Path(env.get("CODEX_HOME") or home / ".codex")
    usual = [claude / "projects", own / "sessions", own / "archived_sessions"]
    return [folder for folder in usual if folder.is_dir()]
