"""One call of a tool, from a test that is not asynchronous."""

import asyncio
import os
from pathlib import Path
from typing import Any

from stenograph.engine.tools.result import Result
from stenograph.engine.tools.toolbox import LocalToolbox, local
from stenograph.engine.tools.workplace import Limits, Permissions

ALL = Permissions(read=True, write=True, execute=True)


def tools(folder: str | os.PathLike[str], limits: Limits | None = None, **env: str) -> LocalToolbox:
    """The tools of a folder, all of them allowed."""
    return local(Path(folder), ALL, env, limits)


def do(box: LocalToolbox, name: str, **arguments: Any) -> Result:
    """Do it to its end."""
    return asyncio.run(box.run(name, arguments))
