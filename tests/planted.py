"""A session with a secret in every place that a log has for text."""

import base64
import json
from typing import Any
from urllib.parse import quote

#: What no answer may hold, in any case: every spelling of `VALUE` but base64 has it in it, and half
#: of it is too much too.
CORE = "quokka7zebra"
VALUE = f'"{CORE}/ü+ \\9'
#: Lengths at which readings cut: titles, previews, results of events.
CUTS = (80, 140, 4_000)


def spelled(value: str) -> str:
    """The value as programs pass it on: escaped, in JSON in JSON, percent-encoded, in base64."""
    raw = value.encode()
    return " ".join(
        [
            value,
            json.dumps({"k": json.dumps([value])}),
            quote(value),
            quote(quote(value, safe=""), safe=""),
            base64.b64encode(raw).decode(),
            base64.urlsafe_b64encode(b"user:" + raw + b"!").decode(),
        ]
    )


def cut(value: str, length: int) -> str:
    """A text in which the value stands across a cut, after enough of it to move the cut."""
    start = f"{value} " * 3 + "x" * length
    return f"{start[: length - 6]}{value} and {quote(value, safe='')} on"


def leaks(text: bytes) -> list[str]:
    """Tell which spellings of the planted value are in some bytes."""
    raw = VALUE.encode()
    found = [base64.b64encode(raw[start:]).decode()[4:16] for start in range(3)]
    return [form for form in (CORE[:8], *found) if form.lower().encode() in text.lower()]


def document(value: str = VALUE, name: str = "one") -> dict[str, Any]:
    """An ATIF document with the value in every string that may hold any, and in keys."""
    text = spelled(value)
    free = {value: [value, {text: text}], "note": text, "session_id": f"s-{value}"}
    call_id, child_id = f"call-{value}", f"child-{value}"
    child = {
        "schema_version": "ATIF-v1.7",
        "session_id": f"below-{name}-{value}",
        "trajectory_id": child_id,
        "agent": {"name": f"helper {value}", "version": value},
        "steps": _numbered(
            {"source": "user", "message": cut(value, CUTS[0])},
            {"source": "agent", "message": text, "reasoning_content": text},
        ),
        "notes": text,
        "extra": free,
    }
    ref = {"trajectory_id": child_id, "session_id": f"below-{name}-{value}", "extra": free}
    image = {"type": "image", "source": {"media_type": "image/png", "path": f"media/{value}.png"}}
    inline = f"data:image/png;base64,{base64.b64encode(value.encode()).decode()}"
    steps = _numbered(
        {"source": "system", "message": text, "extra": free},
        {"source": "user", "message": cut(value, CUTS[0]), "extra": free},
        {
            "source": "agent",
            "message": cut(value, CUTS[1]),
            "reasoning_content": text,
            "model_name": f"model-{value}",
            "reasoning_effort": f"effort-{value}",
            "tool_calls": [
                {
                    "tool_call_id": call_id,
                    "function_name": f"tool-{value}",
                    "arguments": {value: text, "json": json.dumps({"k": value}), "list": [value]},
                    "extra": free,
                },
                {"tool_call_id": "plain", "function_name": "f", "arguments": {"a": text}},
            ],
            "observation": {
                "results": [
                    {
                        "source_call_id": call_id,
                        "content": text,
                        "subagent_trajectory_ref": [ref],
                        "extra": {**free, "is_error": True},
                    },
                    {"source_call_id": "plain", "content": cut(value, CUTS[2])},
                ]
            },
            "metrics": {"prompt_tokens": 5, "cost_usd": 0.5, "extra": free},
            "extra": free,
        },
        {"source": "user", "message": text},
        {
            "source": "agent",
            "message": [
                {"type": "text", "text": text},
                image,
                {"type": "image", "source": {"media_type": "image/png", "path": inline}},
            ],
            "observation": {"results": [{"content": text, "extra": free}]},
        },
        {"source": "system", "message": "", "observation": {"results": [{"content": text}]}},
        {"source": "user", "message": text},
        {"source": "agent", "message": text, "extra": free},
    )
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": f"{name}-{value}",
        "trajectory_id": f"{name}-t-{value}",
        "agent": {
            "name": f"agent {value}",
            "version": value,
            "model_name": f"model-{value}",
            "tool_definitions": [{"name": value, "description": text, "parameters": free}],
            "extra": free,
        },
        "steps": steps,
        "subagent_trajectories": [child],
        "final_metrics": {"extra": free},
        "continued_trajectory_ref": f"next-{value}.json",
        "notes": text,
        "extra": free,
    }


def _numbered(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
