"""Lines of a Codex rollout, as short as a case needs them."""

import json
from itertools import count
from typing import Any

from stenograph.trajectories.importers.codex import read
from stenograph.trajectories.importers.draft import SessionDraft

#: UUIDv7 of 2026-03-02T10:00:00Z, and turns a second before and after.
THREAD = "019cadfd-8900-7a00-8000-000000000001"
BEFORE = "019cadfd-8518-7a00-8000-00000000000b"
AFTER = "019cadfd-8ce8-7a00-8000-00000000000a"
OTHER = "019cadf0-0000-7a00-8000-00000000000f"


def tokens(prompt: int, completion: int, **others: int) -> dict[str, int]:
    return {"input_tokens": prompt, "output_tokens": completion, **others}


class Log:
    """Lines in file order, a second apart."""

    def __init__(self, thread: str = THREAD, **meta: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self._numbers = count(0)
        self.meta(id=thread, cli_version="0.171.0", **meta)

    def line(self, kind: str, **payload: Any) -> None:
        number = next(self._numbers)
        at = f"2026-03-02T10:{number // 60:02}:{number % 60:02}.000Z"
        self.lines.append({"timestamp": at, "ordinal": number, "type": kind, "payload": payload})

    def meta(self, **payload: Any) -> None:
        self.line("session_meta", **payload)

    def event(self, kind: str, **payload: Any) -> None:
        self.line("event_msg", type=kind, **payload)

    def item(self, kind: str, **payload: Any) -> None:
        self.line("response_item", type=kind, **payload)

    def message(self, role: str, *texts: str, **payload: Any) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text} for text in texts]
        self.item("message", role=role, content=content, **payload)

    def call(self, call_id: str, name: str = "exec_command", arguments: Any = "{}") -> None:
        self.item("function_call", name=name, arguments=arguments, call_id=call_id)

    def output(self, call_id: str, output: Any = "done") -> None:
        self.item("function_call_output", call_id=call_id, output=output)

    def record(self, response_id: str, usage: dict[str, int]) -> None:
        self.line("token_usage_record", response_id=response_id, usage=usage)

    def count(self, total: dict[str, int] | None, last: dict[str, int] | None = None) -> None:
        info: dict[str, Any] = {}
        if total is not None:
            info["total_token_usage"] = total
        if last is not None:
            info["last_token_usage"] = last
        self.event("token_count", info=info)

    def bytes(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)

    def read(self) -> SessionDraft:
        return read(self.bytes(), "rollout.jsonl")
