"""A session as an ATIF document, written step by step (seed: export-session-trajectory.md).

Rows are read in chunks and encoded at once; an export of any length holds two chunks in memory.
Masking comes last, over the encoded steps: a chunk that a scan finds clean goes out as it is.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from stenograph import __version__
from stenograph.errors import InvalidInputError, NotFoundError
from stenograph.sessions.conversing import steer_input
from stenograph.storage.database import Row, Tx
from stenograph.trajectories.atif.format import Agent, Json, Metrics, Step
from stenograph.trajectories.export import store
from stenograph.trajectories.export.attachments import attach
from stenograph.trajectories.export.store import SessionFacts, StepRow, TurnRow
from stenograph.trajectories.export.totals import Totals, final_metrics
from stenograph.trajectories.recording.columns import CallColumns, StepColumns, join
from stenograph.trajectories.redaction.redactor import Redactor

#: How deep subagents may nest in a document.
MAX_DEPTH = 32

#: Chunks are scanned here while the next is read: a scan holds no lock of the interpreter.
_SCANNERS = ThreadPoolExecutor(2, thread_name_prefix="redaction")

_encode = msgspec.json.encode
_decode_step = msgspec.json.Decoder(Step).decode
_decode_metrics = msgspec.json.Decoder(Metrics).decode


@dataclass(slots=True)
class _Export:
    """One export under way; the counts are of the whole tree."""

    tx: Tx
    redactor: Redactor
    children: dict[int, list[int]]
    version: str
    excerpts: int = 0
    without_build: int = 0
    pruned_turns: int = 0


def trajectory(tx: Tx, conversation_id: int, redactor: Redactor) -> Iterator[bytes]:
    """Write the document of a session with all its subagents, as pieces of UTF-8 JSON."""
    children = store.tree(tx, conversation_id)
    _check_depth(children, conversation_id)
    audio = store.has_audio(tx, store.shown(tx, conversation_id))
    version = "ATIF-v1.8" if audio else "ATIF-v1.7"
    work = _Export(tx, redactor, children, version)
    yield from _document(work, conversation_id, Totals(), depth=0, trajectory_id=None)


def _check_depth(children: dict[int, list[int]], root: int) -> None:
    """Refuse, before anything is written, what no reader would take."""
    level, depth = [root], 0
    while level := [child for parent in level for child in children.get(parent, ())]:
        depth += 1
        if depth > MAX_DEPTH:
            raise InvalidInputError(
                f"Subagents are nested more than {MAX_DEPTH} deep", code="too_deep"
            )


def _document(
    work: _Export, conversation_id: int, totals: Totals, *, depth: int, trajectory_id: str | None
) -> Iterator[bytes]:
    facts = store.facts(work.tx, conversation_id)
    if facts is None:
        raise NotFoundError("This conversation is no session", code="session_not_found")
    redactor = work.redactor
    document: dict[str, Any] = msgspec.json.decode(facts.document) if facts.document else {}
    agent = _agent(facts)
    yield b'{"schema_version":%b,' % _encode(work.version)
    session_id = facts.document_session_id or facts.public_id
    own_id = trajectory_id or facts.document_trajectory_id or facts.public_id
    yield b'"session_id":%b,' % _encode(redactor.reference(session_id))
    yield b'"trajectory_id":%b,' % _encode(redactor.reference(own_id))
    yield b'"agent":%b,' % _encode(redactor.struct(agent))
    yield b'"steps":['
    pruned = work.pruned_turns
    yield from _written(work, _steps(work, facts, totals))
    yield b"]"
    yield from _subagents(work, conversation_id, totals, depth)
    claimed = document.get("final_metrics") or {}
    metrics = final_metrics(totals, redactor.extra_value(claimed.get("extra")))
    yield b',"final_metrics":%b' % _encode(metrics)
    notes = _notes(document.get("notes"), work.pruned_turns - pruned)
    if notes is not None:
        yield b',"notes":%b' % _encode(redactor.text(notes))
    if reference := document.get("continued_trajectory_ref"):
        yield b',"continued_trajectory_ref":%b' % _encode(redactor.reference(reference))
    extra = redactor.extra_value(document.get("extra"))
    if depth == 0:
        extra = {**(extra or {}), "fidelity": _fidelity(work)}
    if extra is not None:
        yield b',"extra":%b' % _encode(extra)
    yield b"}"


def _agent(facts: SessionFacts) -> Agent:
    """Return who ran the session: the log's agent, or this release (reason-api.md 5)."""
    if facts.agent is not None:
        return msgspec.json.decode(facts.agent, type=Agent)
    tools = None if facts.tools is None else msgspec.json.decode(facts.tools)
    return Agent(
        name="stenograph", version=__version__, model_name=facts.model, tool_definitions=tools
    )


def _notes(notes: str | None, pruned_turns: int) -> str | None:
    if not pruned_turns:
        return notes
    said = (
        f"Execution details of {pruned_turns} turn(s) were deleted by retention:"
        " their prompts, follow-ups and answers are all that is left."
    )
    return said if notes is None else f"{notes}\n{said}"


def _fidelity(work: _Export) -> dict[str, Json]:
    """Say what this document lacks; complete only after everything else was written."""
    found: dict[str, Json] = {
        "redactions": dict(sorted(work.redactor.counts.items())),
        "excerpt_tool_events": work.excerpts,
        "agent_steps_without_build": work.without_build,
    }
    if work.pruned_turns:
        found["pruned_turns"] = work.pruned_turns
    return found


def _subagents(work: _Export, conversation_id: int, totals: Totals, depth: int) -> Iterator[bytes]:
    children = work.children.get(conversation_id, [])
    if not children:
        return
    taken: set[str] = set()
    yield b',"subagent_trajectories":['
    for index, child in enumerate(children):
        facts = store.facts(work.tx, child)
        assert facts is not None
        # Siblings must differ, and logs exist that give two children one id.
        named = facts.document_trajectory_id or facts.public_id
        name = facts.public_id if named in taken else named
        taken.add(name)
        below = Totals()
        totals.children.append(below)
        if index:
            yield b","
        yield from _document(work, child, below, depth=depth + 1, trajectory_id=name)
    yield b"]"


def _steps(work: _Export, facts: SessionFacts, totals: Totals) -> Iterator[list[Step]]:
    """Return the steps in order, chunk by chunk."""
    tx = work.tx
    for conversation_id, boundary in store.segments(tx, facts.conversation_id):
        copied = boundary is not None
        for chunk in store.steps(tx, facts.conversation_id, conversation_id, boundary):
            steps: list[Step] = []
            for row in chunk.steps:
                turn = chunk.turns[row.turn_id] if row.turn_id is not None else None
                if turn and turn.pruned_at is not None and row.part in ("agent", "system"):
                    if row.position == turn.last_step:
                        work.pruned_turns += 1
                        totals.steps += 1
                        steps.append(_answer(totals.steps, turn, row.occurred_at, copied))
                    continue
                if row.part == "system" and row.text is None:
                    continue  # of no turn, and emptied with the session's last details
                totals.steps += 1
                columns = _columns(row, turn, chunk.calls.get(row.task_id or 0, ()))
                step = join(totals.steps, row.source, columns)
                if row.part == "agent":
                    if columns.calls:
                        work.excerpts += sum([call.excerpt for call in columns.calls])
                    work.without_build += not facts.runs_here
                    _account(step, columns, totals, copied)
                elif files := chunk.files.get((row.variant_id or 0, _steer(row))):
                    attach(step, files)
                if copied:
                    step.is_copied_context = True
                    step.metrics = None
                steps.append(step)
            yield steps
    yield _remaining(work, facts, totals)


def _steer(row: StepRow) -> str | None:
    return steer_input(row.rest) if row.part == "steer" else None


def _remaining(work: _Export, facts: SessionFacts, totals: Totals) -> list[Step]:
    """Return prompts that still wait for an agent; a document has at least one step."""
    steps: list[Step] = []
    for text, at in store.prompts_without_steps(work.tx, facts.conversation_id):
        totals.steps += 1
        steps.append(join(totals.steps, "user", _text_columns(text, at)))
    if totals.steps == 0:
        totals.steps = 1
        steps.append(Step(step_id=1, source="system", message=""))
    return steps


def _answer(number: int, turn: TurnRow, at: int | None, copied: bool) -> Step:
    """What is left of a turn whose detail is gone: its answer, where its last step was."""
    step = join(number, "agent", _text_columns(turn.content or "", at))
    step.is_copied_context = True if copied else None
    step.model_name = None
    step.extra = {"stenograph": {"details_pruned": True}}
    return step


def _text_columns(text: str, at: int | None) -> StepColumns:
    return StepColumns(text, None, None, None, None, at, None, [], None, False)


def _columns(row: StepRow, turn: TurnRow | None, calls: Iterable[Row]) -> StepColumns:
    usage = None
    if row.receipt_id is not None:
        usage = (row.prompt_tokens, row.completion_tokens, row.cached_tokens, row.cost_usd)
    text = row.message if row.part == "agent" else row.text
    count = row.llm_call_count
    if text is None and turn is not None and row.task_id is None:
        # A prompt, a message that somebody posted without asking a model, or an adopted answer.
        asked = row.part != "agent" and turn.prompt is not None
        text = turn.prompt if asked else turn.content
        count = 0 if row.part == "agent" else count
    return StepColumns(
        text=text or "",
        reasoning=row.reasoning,
        model=row.model,
        effort=row.effort,
        llm_call_count=count,
        occurred_at=row.occurred_at,
        rest=row.invocation_rest if row.part == "agent" else row.rest,
        calls=[
            CallColumns(call_id, name, input or "{}", output, rest, output is not None)
            for _, call_id, name, input, output, rest in calls
        ],
        usage=usage,
        copied=False,
    )


def _account(step: Step, columns: StepColumns, totals: Totals, copied: bool) -> None:
    """Count a model call, if it was made in this document and was billed at all."""
    if copied or step.is_copied_context:
        return
    unread: object = step.metrics
    if isinstance(unread, Raw):
        metrics = _decode_metrics(unread)
        totals.add(
            metrics.prompt_tokens,
            metrics.completion_tokens,
            metrics.cached_tokens,
            metrics.cost_usd,
        )
    elif columns.usage is not None:
        totals.add(*columns.usage)
    elif columns.llm_call_count != 0:
        totals.cost_known = False


def _written(work: _Export, chunks: Iterator[list[Step]]) -> Iterator[bytes]:
    """Encode steps and mask what needs it. Yields without the brackets around them."""
    lead = b""
    for encoded in _masked_chunks(work.redactor, chunks):
        yield b"".join((lead, memoryview(encoded)[1:-1]))
        lead = b","


def _masked_chunks(redactor: Redactor, chunks: Iterator[list[Step]]) -> Iterator[bytes]:
    """Return each chunk that holds steps as a JSON array, fit to leave."""
    waiting: tuple[list[Step], bytes, Future[bool]] | None = None
    for steps in chunks:
        if steps:
            encoded = _encode(steps)
            scan = _SCANNERS.submit(redactor.clean, encoded)
            if waiting is not None:
                yield _masked_chunk(redactor, *waiting)
            waiting = steps, encoded, scan
    if waiting is not None:
        yield _masked_chunk(redactor, *waiting)


def _masked_chunk(
    redactor: Redactor, steps: list[Step], encoded: bytes, scan: "Future[bool]"
) -> bytes:
    if scan.result():
        return encoded
    return b"[%b]" % b",".join(_masked(redactor, step) for step in steps)


def _masked(redactor: Redactor, step: Step) -> bytes:
    encoded = _encode(step)
    if redactor.clean(encoded):
        return encoded
    return _encode(redactor.struct(_decode_step(encoded)))
