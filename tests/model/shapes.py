"""What is compared of an answer of the API, and the same of the plain model."""

from __future__ import annotations

from typing import Any

from model import plain_readings as plain
from model.plain_model import Candidate, Conversation, Look, Turn


def same(told: Any, expected: Any, about: object = "") -> None:
    """Fail with what is told and what should be, where they first differ."""
    if isinstance(told, list) and isinstance(expected, list) and len(told) == len(expected):
        for one, other in zip(told, expected, strict=True):
            same(one, other, about)
    elif isinstance(told, dict) and isinstance(expected, dict) and told.keys() == expected.keys():
        for name, value in expected.items():
            same(told[name], value, f"{about} {name}")
    else:
        assert told == expected, f"{about} is told as\n  {told!r}, and should be\n  {expected!r}"


def turn_of(where: Conversation, turn: Turn, look: Look) -> dict[str, Any]:
    beside = [it for it in plain.deck(turn) if not it.settled and it is not turn.active]
    return {
        "public_id": turn.id,
        "position": turn.position,
        "kind": turn.kind,
        "role": turn.role,
        "status": turn.active.status,
        "visibility": look.visibility,
        "inherited": turn not in where.own,
        "reference": where.side and turn in where.own and turn.active.source == "fork",
        "active_variant": variant_of(turn.active),
        "running_variant": variant_of(beside[0]) if beside else None,
    }


def told_turn(it: dict[str, Any]) -> dict[str, Any]:
    names = ("public_id", "position", "kind", "role", "status", "visibility", "inherited")
    beside = it.get("running_variant")
    return {
        **{name: it[name] for name in names},
        "reference": it.get("reference", False),
        "active_variant": told_variant(it["active_variant"]),
        "running_variant": None if beside is None else told_variant(beside),
    }


def variant_of(it: Candidate, *, active: bool | None = None) -> dict[str, Any]:
    rounds = [t.key for t in it.thoughts] if it.begun and not it.pruned else []
    return {
        "public_id": it.id,
        "source": it.source,
        "status": it.status,
        "prompt_text": it.prompt,
        "content": it.content,
        "origin_variant_public_id": it.origin and it.origin.id,
        "pruned": it.pruned,
        "run": it.source == "run" and it.begun,
        "rounds": rounds if it.source == "run" else [],
        "active": active,
    }


def told_variant(it: dict[str, Any], *, active: bool | None = None) -> dict[str, Any]:
    pruned = "details_pruned_at" in it
    assert it["runner_effects"]["status"] == ("unavailable" if pruned else "untouched")
    names = ("prompt_text", "content", "origin_variant_public_id")
    return {
        "public_id": it["public_id"],
        "source": it["source"],
        "status": it["status"],
        **{name: it.get(name) for name in names},
        "pruned": pruned,
        "run": "run_public_id" in it,
        "rounds": [one["task_key"] for one in it.get("rounds") or []],
        "active": active,
    }


def told_item(it: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in it.items() if name != "model"}


def told_hit(it: dict[str, Any]) -> tuple[str, ...]:
    names = ("conversation_public_id", "turn_public_id", "variant_public_id", "field", "inherited")
    return tuple(it[name] if name != "inherited" else str(it[name]) for name in names)
