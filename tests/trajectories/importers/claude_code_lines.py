"""Lines of a Claude Code log, as short as a case needs them."""

import json
from itertools import count
from typing import Any

from stenograph.trajectories.importers.claude_code import read
from stenograph.trajectories.importers.draft import SessionDraft

SESSION = "7f3c1f0e-5a53-4b52-9a3e-6a4f0e6f2a10"
ROOT = f"{SESSION}.jsonl"

USAGE = {
    "input_tokens": 10,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 5,
    "output_tokens": 7,
}


class Log:
    """Lines in file order; each is a child of the one before, unless it names a parent."""

    def __init__(self, session: str = SESSION, **common: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self.last: str | None = None
        self.common = {"sessionId": session, "isSidechain": False, **common}
        self._numbers = count(1)

    def line(self, kind: str, **fields: Any) -> str:
        number = next(self._numbers)
        uuid = fields.pop("uuid", f"{self.common.get('agentId', 'u')}{number}")
        at = f"2026-03-02T10:00:{number % 60:02}.000Z"
        own = {"type": kind, "uuid": uuid, "parentUuid": self.last, "timestamp": at}
        self.lines.append(json.loads(json.dumps(self.common | own | fields)))
        self.last = uuid
        return str(uuid)

    def user(self, content: Any, **fields: Any) -> str:
        return self.line("user", message={"role": "user", "content": content}, **fields)

    def result(self, call: str | None, content: Any = "done", **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        if fields.pop("is_error", False):
            block["is_error"] = True
        return self.user([block], **fields)

    def answer(self, message_id: str | None, *blocks: Any, **fields: Any) -> str:
        message = {"role": "assistant", "model": "claude-opus-4-8", "content": list(blocks)}
        if message_id is not None:
            message["id"] = message_id
        message["usage"] = fields.pop("usage", USAGE)
        message |= fields.pop("message", {})
        return self.line("assistant", message=message, **fields)

    def bytes(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)

    def read(self, **others: bytes) -> SessionDraft:
        return read({ROOT: self.bytes()} | others, ROOT)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(call_id: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def said(draft: SessionDraft) -> list[tuple[str, Any]]:
    """Each step as its part and its message."""
    return [(step.part, step.step.message) for step in draft.steps]
