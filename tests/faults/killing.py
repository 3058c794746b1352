"""Kill a process in the middle of its work, at a chosen statement, as `kill -9` would."""

import itertools
import os
import signal
import sys
from collections.abc import Callable

from stenograph.storage.database import Database
from stenograph.storage.location import Location, connect


def killed(place: Location, statement: int, act: Callable[[Database], object]) -> bool:
    """Do `act` in a process of its own that is killed at its n-th SQL statement.

    False: it had ended before that, undisturbed.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _work(place, statement, act)
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        assert os.WTERMSIG(ended) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(ended) == 0, "the work itself failed"
    return False


def _work(place: Location, statement: int, act: Callable[[Database], object]) -> None:
    counter = itertools.count(1)

    def observe(_: str) -> None:
        if next(counter) == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    database = connect(place)
    database.observer = observe
    act(database)
    database.observer = None
    database.close()


def statements(place: Location, act: Callable[[Database], object]) -> int:
    """Do `act` undisturbed, and return how many statements it took."""
    count = 0

    def observe(_: str) -> None:
        nonlocal count
        count += 1

    database = connect(place)
    database.observer = observe
    act(database)
    database.close()
    return count
