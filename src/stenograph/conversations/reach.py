"""Which models this process can ask. The settings are read once, when it starts, and whoever reads
them says so here: an input waits longer than a setting may stay."""

from collections.abc import Callable

_asked: list[Callable[[str], bool]] = []


def judge(can_ask: Callable[[str], bool]) -> None:
    """Let `can_ask` tell from now on, by a model's name (`provider/model`), if it can be asked."""
    _asked[:] = [can_ask]


def is_reachable(model: str) -> bool:
    """Tell whether a model can be asked; nobody has said: it can."""
    return all(can_ask(model) for can_ask in _asked)
