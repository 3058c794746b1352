"""Harbor's own ATIF models and validator, as a second opinion (`harbor` 0.26.0, Apache-2.0).

Harbor cannot be installed on Python 3.11, but these modules of its wheel need only pydantic. The
wheel is fetched once into `.oracles/`, unpacked and kept.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

VERSION = "0.26.0"
_REPOSITORY = Path(__file__).resolve().parents[2]
_FOLDER = _REPOSITORY / ".oracles" / f"harbor-{VERSION}"
_WAIT_SECONDS = 180


def validate(document: dict | bytes, folder: Path | None = None) -> list[str]:
    """Return what Harbor has against a document; empty: it is valid.

    With `folder`, Harbor also looks whether the media files lie there.
    """
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    validator = _module("harbor.utils.trajectory_validator").TrajectoryValidator()
    if folder is None:
        validator.validate(json.loads(data))
        return list(validator.errors)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".json") as file:
        file.write(data)
        file.flush()
        validator.validate(Path(file.name))
    return list(validator.errors)


def load(data: bytes) -> object:
    """Return Harbor's `Trajectory` of a document; raises pydantic's ValidationError."""
    return _module("harbor.models.trajectories").Trajectory.model_validate_json(data)


@cache
def _module(name: str) -> ModuleType:
    wheel = str(_unpacked())
    sys.path.insert(0, wheel)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(wheel)


@cache
def _unpacked() -> Path:
    """Return the folder of the unpacked wheel; one process fetches it, the others wait."""
    _FOLDER.parent.mkdir(exist_ok=True)
    lock = _FOLDER.with_suffix(".lock")
    deadline = time.monotonic() + _WAIT_SECONDS
    while not _FOLDER.exists():
        try:
            lock.mkdir()
        except FileExistsError:
            if time.monotonic() > deadline:
                lock.rmdir()  # whoever made it is gone
            time.sleep(0.1)
            continue
        try:
            if not _FOLDER.exists():
                _fetch()
        finally:
            lock.rmdir()
    return _FOLDER


def _fetch() -> None:
    with tempfile.TemporaryDirectory(dir=_FOLDER.parent) as work:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--python-version", "3.12", "--only-binary=:all:", "--dest", work]
        done = subprocess.run([*command, f"harbor=={VERSION}"], capture_output=True, text=True)
        if done.returncode != 0 and not os.environ.get("CI"):
            pytest.skip(f"the wheel of harbor {VERSION} cannot be fetched: {done.stderr[-300:]}")
        done.check_returncode()
        (wheel,) = Path(work).glob("harbor-*.whl")
        unpacked = Path(work) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        shutil.move(unpacked, _FOLDER)
