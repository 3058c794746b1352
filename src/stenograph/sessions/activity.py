"""A session's events as its readers get them: what was said, thought and done, as it happens.

The journal names rows and holds no text; the text is joined here. What retention has deleted is
gone from an item too, and the item stays. Kinds of items:

- `message`: what a person, or a child session, said: the text, and whether it is the session's
  `prompt` or a `message`
- `assistant`: one model call's answer: the text, `reasoning`, `model`, `usage`
- `model`: a model is asked, or has failed: `task_key`, `status`
- `tool`: the state of a tool call: `name`, `arguments`, `status`, `result`, `child_session_id`
- `status`: how a turn stands, in the words of a session's status
- the words of the journal: everything else, for diagnosis only
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from stenograph.events import feed
from stenograph.events.feed import Entry
from stenograph.sessions import store_activity as store
from stenograph.storage.database import Row, Tx

#: The journal's words that every reader gets.
ORDINARY = ("turn_created", "input_accepted", "round_result", "task_status", "turn_status")

#: How a turn's status reads as a session's (reason-api.md 3).
STATUS = {
    "pending": "running",
    "running": "running",
    "completed": "exit",
    "failed": "error",
    "timed_out": "error",
    "canceled": "cancelled",
}


@dataclass(frozen=True, slots=True)
class Activity:
    """One item. `seq` is the journal's number, `occurred_at` in microseconds."""

    seq: int
    type: str
    data: dict[str, Any]
    text: str | None
    occurred_at: int


def page(
    tx: Tx, conversation_id: int, after: int, limit: int, *, diagnostic: bool, longest: int
) -> list[Activity]:
    """Return up to `limit` items behind `after`; `diagnostic` adds kinds and raw metadata.

    Results of tools are cut after `longest` characters. At most five queries.
    """
    types = None if diagnostic else ORDINARY
    entries = feed.page(tx, conversation_id, after, limit, types)
    texts = _texts(tx, entries, longest)
    items = [_item(entry, texts, diagnostic) for entry in entries]
    if diagnostic:
        for item, entry in zip(items, entries, strict=True):
            item.data["event"] = {
                "id": entry.public_id,
                "type": entry.type,
                "payload": entry.payload,
                "run_id": entry.run_public_id,
                "task_kind": entry.task_kind,
            }
    return items


@dataclass(slots=True)
class _Texts:
    """Rows that events point at, by row id."""

    prompts: dict[int, Row]
    steers: dict[int, Row]
    rounds: dict[int, Row]
    calls: dict[int, Row]


def _texts(tx: Tx, entries: list[Entry], longest: int) -> _Texts:
    shown = [e for e in entries if not e.concealed]

    def ids(column: str, *types: str) -> set[int]:
        found = {getattr(e, column) for e in shown if e.type in types}
        return found - {None}

    wanted = (
        (store.prompts, ids("variant_id", "turn_created", "turn_status")),
        (store.steers, ids("step_id", "input_accepted")),
        (store.rounds, ids("task_id", "round_result")),
        (lambda tx, i: store.calls(tx, i, longest), ids("task_id", "task_status")),
    )
    return _Texts(*({r[0]: r for r in look(tx, found)} if found else {} for look, found in wanted))


def _item(entry: Entry, texts: _Texts, diagnostic: bool) -> Activity:
    data: dict[str, Any] = {"turn_id": entry.turn_public_id}
    kind: str = entry.type
    text: str | None = None
    match entry.type:
        case "turn_created":
            row = texts.prompts.get(entry.variant_id or 0)
            if row is not None and row[1] is None:
                kind, data["status"] = "status", "running"
            else:
                kind, text = "message", None if row is None else row[1]
                data |= {"kind": "message" if entry.turn_position else "prompt", "role": "user"}
        case "input_accepted":
            row = texts.steers.get(entry.step_id or 0)
            kind, text = "message", None if row is None else row[1]
            data |= {"kind": "message", "role": "user"}
        case "round_result":
            kind = "assistant"
            text = _round(data, entry, texts.rounds.get(entry.task_id or 0))
        case "task_status" if entry.task_kind == "model_task":
            kind = "model"
            data |= {"task_key": entry.task_key, "status": entry.payload.get("status")}
        case "task_status":
            kind = "tool"
            _call(data, entry, texts.calls.get(entry.task_id or 0))
        case "turn_status":
            kind = "status"
            status = entry.payload.get("status")
            data["status"] = STATUS.get(status, status) if isinstance(status, str) else None
            row = texts.prompts.get(entry.variant_id or 0)
            text = row[2] if row is not None and diagnostic else None
    return Activity(entry.sequence, kind, data, text, entry.occurred_at)


def _round(data: dict[str, Any], entry: Entry, row: Row | None) -> str | None:
    """Add what a model call was and used; returns what it said."""
    data["task_key"] = entry.task_key or entry.payload.get("task_key")
    if row is None:
        return None
    _, provider, model, effort, message, reasoning, prompt, cached, completion, cost = row
    data["model"] = {"provider_id": provider, "model_ref": model, "reasoning_effort": effort}
    data["reasoning"] = reasoning
    data["usage"] = {
        "input_tokens": prompt,
        "cached_input_tokens": cached,
        "output_tokens": completion,
        "cost_usd": cost,
    }
    text: str | None = message
    return text


def _call(data: dict[str, Any], entry: Entry, row: Row | None) -> None:
    """Add what was called, with what, and what came of it; `result` may be cut."""
    data["task_key"] = entry.task_key or entry.payload.get("task_key")
    data["status"] = entry.payload.get("status")
    if row is None:
        return
    _, call_id, name, _, error, child, arguments, result, length = row
    data |= {
        "tool_call_id": call_id,
        "name": name,
        "arguments": None if arguments is None else msgspec.json.decode(arguments),
        "result": result,
        "result_length": length,
        "error": error,
        "child_session_id": child,
    }
