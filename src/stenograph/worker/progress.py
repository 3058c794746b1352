"""What a command writes, told to the server while it runs, for who watches.

The end of it, again and again: one that gets lost is made good by the next. Nothing waits for this,
and nothing fails for it.
"""

import asyncio
import codecs
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from stenograph.engine import results
from stenograph.errors import StenographError
from stenograph.worker.client import Client
from stenograph.worker.retrying import end

#: Characters of the output's end that are told.
WINDOW = 8_000
#: Seconds before the first report and between two; the longer ones while nobody watches.
_FIRST, _WATCHED, _UNWATCHED = 0.3, 0.25, 2.0


@dataclass(slots=True)
class _Output:
    """The end of what a command has written, as text; `characters` counts all of it."""

    text: str = ""
    characters: int = 0
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )

    def add(self, chunk: bytes) -> None:
        more = results.storable(self.decoder.decode(chunk))
        self.characters += len(more)
        self.text = (self.text + more)[-WINDOW:]


@asynccontextmanager
async def reported(
    client: Client, claim_id: Callable[[], str]
) -> AsyncIterator[Callable[[bytes], None]]:
    """Report, as long as this is entered, what the given function hears of a claim's output.

    `claim_id`: under which the call is held at the moment.
    """
    output = _Output()
    telling = asyncio.create_task(_tell(client, claim_id, output))
    try:
        yield output.add
    finally:
        await end(telling)


async def _tell(client: Client, claim_id: Callable[[], str], output: _Output) -> None:
    told, pause = 0, _FIRST
    while True:
        await asyncio.sleep(pause)
        pause = _WATCHED
        if output.characters == told:
            continue
        characters, watched = output.characters, False
        # Away, or the claim is another's by now: that is for those who settle it to find out.
        with suppress(StenographError):
            watched = await client.report(claim_id(), output.text, characters)
        # Who comes later sees what a command that is silent by then has written.
        told = characters if watched else 0
        pause = _WATCHED if watched else _UNWATCHED
