"""What a command says on its standard error, of which the end is kept."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

#: Bytes kept: an error's last lines.
KEPT = 2_000


class Stderr(asyncio.Protocol):
    """One command's standard error."""

    def __init__(self) -> None:
        self._end = b""

    def data_received(self, data: bytes) -> None:
        self._end = (self._end + data)[-KEPT:]

    def text(self) -> str:
        """Return the end of what was said, in whole lines: half of one may be half a secret."""
        text = self._end.decode(errors="replace")
        if len(self._end) == KEPT:
            text = text.partition("\n")[2]
        return text.strip()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[TextIO]:
        """Give what the command is to write to; close it once the command has it."""
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb", 0) as source, os.fdopen(writing, "w") as sink:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: self, source)
            try:
                yield sink
            finally:
                transport.close()
