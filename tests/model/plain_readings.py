"""What the plain model shows: each reading of the API as a comprehension over its values."""

from __future__ import annotations

from collections.abc import Iterator

from model.plain_model import Candidate, Conversation, Look, Row, Step, Turn, World


def timeline(where: Conversation, *, hidden: bool) -> list[tuple[Turn, Look]]:
    """The turns that are not concealed here, hidden ones if wanted (3.3)."""
    looks = [(turn, where.look(turn)) for turn in where.turns]
    return [(t, it) for t, it in looks if not it.concealed and (hidden or not it.veiled)]


def deck(turn: Turn) -> list[Candidate]:
    """The candidates that are not concealed (3.3)."""
    return [it for it in turn.deck if not it.concealed]


def reasoning(
    where: Conversation, turn: Turn, candidate: Candidate
) -> int | list[dict[str, object]]:
    """The items of the reasoning page, or the status of a refusal (5)."""
    if turn not in where.turns or where.look(turn).concealed or candidate.concealed:
        return 404
    if candidate.pruned:
        return 410
    found = []
    for thought in candidate.thoughts:
        item: dict[str, object] = {"available": bool(thought.text and thought.text.strip())}
        if thought.key is not None:
            item["task_key"] = thought.key
        if item["available"]:
            item["text"] = thought.text
        found.append(item)
    return found


def feed(where: Conversation) -> list[Row]:
    """The rows of what it inherits, the oldest ancestor's first, then its own (reason-api.md 4)."""
    inherited = [
        row for owner, last in where.lineage for row in owner.feed if row.turn.position <= last
    ]
    return [row for row in [*inherited, *where.feed] if not where.look(row.turn).veiled]


def content(row: Row) -> str:
    """What a row of the feed says."""
    if row.text is not None:
        return row.text
    shown = row.turn.active
    said = shown.content if row.kind == "reply" or row.turn.kind == "message" else shown.prompt
    return said or ""


def trajectory(where: Conversation) -> list[tuple[str, str, bool]]:
    """Source, message and whether it is copied context, of each step (reason-api.md 5)."""
    found = []
    for owner, last in [*where.lineage, (where, 2**62)]:
        steps = [it for it in owner.steps if it.turn.position <= last and _is_told(where, it)]
        found += [(*said, owner is not where) for said in _said(steps)]
    return found or [("system", "", False)]


def _is_told(where: Conversation, step: Step) -> bool:
    return step.candidate is step.turn.active and not where.look(step.turn).concealed


def _said(steps: list[Step]) -> Iterator[tuple[str, str]]:
    """Of a pruned candidate the answer is left, where its last model call was."""
    for index, step in enumerate(steps):
        it = step.candidate
        if step.part in ("prompt", "system"):
            opened = it.content if step.turn.kind == "message" else it.prompt
            yield ("user" if step.part == "prompt" else "system"), opened or ""
        elif step.part == "steer":
            yield "user", step.text or ""
        elif it.pruned:
            later = [s for s in steps[index + 1 :] if s.candidate is it and s.part == "agent"]
            yield from () if later else [("agent", it.content or "")]
        elif step.done:
            yield "agent", (it.content if step.text is None else step.text) or ""


def fields(turn: Turn) -> dict[str, str]:
    """The texts of a turn that are searched, and that its history tells (8)."""
    it = turn.active
    texts = {"prompt": it.prompt, "steers": "\n\n".join(it.steers), "content": it.content}
    return {name: text for name, text in texts.items() if text}


def hits(
    world: World, person: str, word: str, *, archived: bool, auxiliary: bool
) -> set[tuple[str | None, ...]]:
    """Conversation, turn, candidate and field of each place where a word is found (8)."""
    return {
        (where.id, turn.id, turn.active.id, name, str(turn not in where.own))
        for where in readable(world, person)
        if (archived or not where.archived) and (auxiliary or not where.side)
        for turn, _ in timeline(where, hidden=False)
        for name, text in fields(turn).items()
        if word in text.split()
    }


def readable(world: World, person: str) -> list[Conversation]:
    """What a person finds at all."""
    return [
        it for it in world.conversations if it.deleted_at is None and it.level(person) != "none"
    ]


def members(world: World, person: str, which: str) -> list[str | None]:
    """The ids of a list of conversations (3.1)."""
    return [
        it.id
        for it in readable(world, person)
        if (it.side, it.archived)
        == {"working": (False, False), "sides": (True, False), "archived": (False, True)}[which]
    ]
