"""One response of the model, as one agent step: the items up to the next count of tokens."""

from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import (
    Extra,
    Json,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
)
from stenograph.trajectories.importers.codex import calls
from stenograph.trajectories.importers.codex.content import Gathered, as_json, texts
from stenograph.trajectories.importers.codex.lines import Line
from stenograph.trajectories.importers.codex.usage import bill
from stenograph.trajectories.importers.draft import StepDraft

_PASSED_OVER = ("internal_chat_message_metadata_passthrough", "status")


@dataclass(slots=True)
class Response:
    """A response while its items are gathered; `draft` has its place, `finish` fills it."""

    draft: StepDraft
    timestamp: str | None
    model: str | None
    effort: str | float | None
    copied: bool
    #: Its tokens were counted, or one of its calls was answered: nothing more belongs to it.
    closed: bool = False
    counts: dict[str, int] | None = None
    kinds: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    native: list[dict[str, Json]] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    results: dict[str, list[ObservationResult]] = field(default_factory=dict)
    #: What the program told of its work on a call, by call id.
    facts: dict[str, Extra] = field(default_factory=dict)
    started: dict[str, list[str]] = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)

    def say(self, text: str) -> None:
        if text:
            self.messages.append(text)

    def think(self, item: dict[str, Json]) -> None:
        """Take in a reasoning item; its encrypted form is kept for replay only."""
        self.thoughts += texts(item.get("summary")) + texts(item.get("content"))
        self.native.append({n: v for n, v in item.items() if n not in _PASSED_OVER})

    def ask(self, call: ToolCall) -> None:
        """Take in a call. One that a script made stands after the script's call."""
        parent = (call.extra or {}).get("parent_tool_call_id")
        self.calls[call.tool_call_id] = call
        if parent in self.calls:
            order = list(self.calls)[:-1]
            at = order.index(parent) + 1
            while at < len(order) and _parent(self.calls[order[at]]) == parent:
                at += 1
            order.insert(at, call.tool_call_id)
            self.calls = {name: self.calls[name] for name in order}

    def answer(self, result: ObservationResult, line: Line) -> None:
        """Take in a result of one of the calls; the same one twice is one."""
        call_id = str(result.source_call_id)
        known = self.results.setdefault(call_id, [])
        if result not in known:
            known.append(result)
        if line.timestamp is not None:
            self.draft.result_times.setdefault(call_id, line.timestamp)

    def learn(self, item: dict[str, Json]) -> None:
        """Take in what an event tells of the work on a call."""
        call_id = item["id"]
        self.facts[call_id] = calls.merged(self.facts.get(call_id), calls.facts(item)) or {}
        self.started.setdefault(call_id, []).extend(calls.children(item))


def _parent(call: ToolCall) -> Json:
    return (call.extra or {}).get("parent_tool_call_id")


def add(response: Response, line: Line, gathered: Gathered) -> ToolCall | None:
    """Take in an item that the model wrote; returns the call that it is, if it is one."""
    item, kind = line.payload, line.kind
    response.kinds.append(kind)
    if kind == "message":
        response.say("".join(texts(item.get("content"))))
        if phase := line.text("phase"):
            response.extra["phase"] = phase
    elif kind == "reasoning":
        response.think(item)
    else:
        call_id = line.text("call_id") or line.text("id") or f"line-{line.number}"
        made = calls.call(item | {"type": kind}, call_id)
        response.ask(made)
        if (within := calls.answer_within(item, gathered)) is not None:
            found = ObservationResult(
                source_call_id=call_id, content=within.content, extra=within.extra or None
            )
            response.answer(found, line)
        return made
    return None


def finish(response: Response, provider: str) -> None:
    """Make the step of what was gathered."""
    draft = response.draft
    for call_id, more in response.facts.items():
        for result in response.results.get(call_id, ()):
            result.extra = calls.merged(more, result.extra or {})
            calls.refer(result, response.started.get(call_id, []))
    draft.failed_calls = frozenset(c for c in response.calls if _has_failed(response, c))
    draft.provider_id = provider
    if response.native or response.thoughts:
        draft.reasoning_enabled = True
    if any(item.get("encrypted_content") for item in response.native):
        draft.reasoning_trace = as_json(response.native)
    own: Extra = {"items": response.kinds} if response.kinds else {}
    results = [r for call_id in response.calls for r in response.results.get(call_id, ())]
    draft.step = Step(
        step_id=0,
        source="agent",
        message="\n\n".join(response.messages),
        timestamp=response.timestamp,
        model_name=response.model,
        reasoning_effort=response.effort,
        reasoning_content="\n\n".join(response.thoughts) or None,
        tool_calls=list(response.calls.values()) or None,
        observation=Observation(results=results) if results else None,
        is_copied_context=True if response.copied else None,
        llm_call_count=1,
        extra={"codex": own | response.extra} if own or response.extra else None,
    )
    if not response.copied:
        bill(draft, response.counts)


def _has_failed(response: Response, call_id: str) -> bool:
    """Whether the log shows a call as failed: by its result, its exit code, or with no result."""
    results = response.results.get(call_id)
    if not results:
        return True
    last = results[-1].extra or {}
    status = last.get("codex", {}).get("status")
    return (
        last.get("is_error") is True
        or last.get("exit_code", 0) != 0
        or status in ("failed", "declined", "canceled")
    )
