"""A file that one process at a time holds, and that tells others where that process is reached.

The system lets go of it when the process ends, however that comes about.
"""

import fcntl
from pathlib import Path
from typing import TextIO

#: The file in the data folder that the process holds whose engine answers.
ENGINE = "engine.lock"


def take(path: Path, url: str) -> TextIO | None:
    """Hold the file, with `url` in it, until what is returned is closed; None: another process
    holds it."""
    file = path.open("a+")
    path.chmod(0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    file.truncate(0)
    file.write(url)
    file.flush()
    return file


def holder(path: Path) -> str | None:
    """Return the URL of the process that holds the file; None: nobody does."""
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return path.read_text() or None
