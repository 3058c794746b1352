"""What the model wrote, what its calls brought back, and what that took."""

from stenograph.trajectories.atif.format import Json, Observation, ObservationResult, Step
from stenograph.trajectories.importers.codex import calls
from stenograph.trajectories.importers.codex.lines import Line
from stenograph.trajectories.importers.codex.response import Response, add
from stenograph.trajectories.importers.codex.thread import Walk, respond, system


def item(walk: Walk, line: Line) -> None:
    """Read an item of a response: a message, reasoning, or a call."""
    response = respond(walk, line, line.text("id") or line.text("call_id"))
    made = add(response, line, walk.gathered)
    if made is None:
        return
    walk.by_call[made.tool_call_id] = response
    if line.kind == "custom_tool_call" and made.function_name == calls.SCRIPT:
        walk.scripts.append(made.tool_call_id)
        walk.last_script = made.tool_call_id


def result(walk: Walk, line: Line) -> None:
    """Read what the model was sent for a call; without one here, it becomes a step of its own."""
    found = calls.output(line.payload, walk.gathered)
    call_id = line.text("call_id")
    answer = ObservationResult(content=found.content, extra=found.extra or None)
    calls.refer(answer, found.children)
    response = None if call_id is None else walk.by_call.get(call_id)
    if response is None:
        walk.gathered.warnings.append(
            f"Line {line.number} holds a result of {call_id}, a call that is not here"
        )
        step = Step(step_id=0, source="system", message="")
        step.observation = Observation(results=[answer])
        own = {"kind": "orphan_result", "call_id": call_id}
        system(walk, line, step, own, line.text("id"))
        return
    answer.source_call_id = call_id
    response.answer(answer, line)
    response.closed = True
    if call_id in walk.scripts:
        walk.scripts.remove(call_id)


def work(walk: Walk, line: Line, done: dict[str, Json]) -> None:
    """Read what the program did: for a call that is here, or for one that a script made."""
    response = walk.by_call.get(done["id"])
    if response is None:
        if walk.last_script is None:
            walk.gathered.keep_aside(done["type"])
            return
        # Of two scripts at once nothing tells which one asked.
        running = walk.scripts or [walk.last_script]
        parent = running[0] if len(running) == 1 else None
        response = walk.by_call[walk.last_script if parent is None else parent]
        made, answer = calls.nested(done, parent)
        response.ask(made)
        response.answer(answer, line)
        walk.by_call[made.tool_call_id] = response
    response.learn(done)


def record(walk: Walk, line: Line) -> None:
    """Read that a call to the model ended, with its tokens and its id."""
    counts = walk.meter.record(line.payload)
    if counts is None:
        return
    response = _bill(walk, line, counts)
    if (response_id := line.text("response_id")) is not None:
        response.extra["response_id"] = response_id
        response.draft.key = response_id
        walk.keys.add(response_id)


def token_count(walk: Walk, line: Line) -> None:
    """Read a count of tokens, which in older logs ends a call."""
    counts = walk.meter.count(line.payload.get("info"))
    if counts is not None:
        _bill(walk, line, counts)


def _bill(walk: Walk, line: Line, counts: dict[str, int]) -> Response:
    """Give tokens to the response that has none yet.

    Where each has its own, a call was made and paid for that left nothing in the log.
    """
    response = walk.turn.last
    if response is None or response.counts is not None:
        walk.open = None
        response = respond(walk, line)
    response.counts, response.closed = counts, True
    return response
