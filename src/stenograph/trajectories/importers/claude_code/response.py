"""One response of the model: the lines that share a `message.id`, as one agent step.

Claude Code writes a line per content block, each repeating the usage of the whole response, and
the results of calls that ran early may stand between them.
"""

from dataclasses import dataclass, field

from stenograph.trajectories.atif.format import (
    Extra,
    Json,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
)
from stenograph.trajectories.importers.claude_code.content import as_json, blocks
from stenograph.trajectories.importers.claude_code.lines import Line
from stenograph.trajectories.importers.draft import StepDraft

PROVIDER = "anthropic"
#: The model name of lines that the program wrote itself, without asking a model.
SYNTHETIC = "<synthetic>"

_BIGGEST = 2**63 - 1


@dataclass(slots=True)
class Response:
    """A response while its lines are gathered; `draft` has its place, `finish` fills it."""

    draft: StepDraft
    lines: list[Line] = field(default_factory=list)
    blocks: list[dict[str, Json]] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    results: dict[str, list[ObservationResult]] = field(default_factory=dict)
    #: Identity of its first line, for `extra.claude_code`.
    extra: Extra = field(default_factory=dict)

    def add(self, line: Line) -> None:
        """Take in the blocks of one more line."""
        self.lines.append(line)
        for block in blocks(line.content):
            self.blocks.append(block)
            name, call_id = block.get("name"), block.get("id")
            if block["type"].endswith("tool_use") and isinstance(call_id, str):
                self.calls.setdefault(call_id, _call(call_id, name, block.get("input")))


def _call(call_id: str, name: Json, arguments: Json) -> ToolCall:
    return ToolCall(
        tool_call_id=call_id,
        function_name=name if isinstance(name, str) else "unknown",
        arguments=arguments if isinstance(arguments, dict) else {"input": arguments},
    )


def is_synthetic(line: Line) -> bool:
    """Whether the program wrote this assistant line itself: an API error, a placeholder."""
    return line.object("message").get("model") == SYNTHETIC


def finish(response: Response, *, copied: bool) -> None:
    """Make the step of what was gathered. `copied`: it was paid for in another session."""
    first, draft = response.lines[0], response.draft
    native = [block for block in response.blocks if block["type"].endswith("thinking")]
    if native:
        draft.reasoning_enabled = True
    if any(block.get("signature") or block.get("data") for block in native):
        draft.reasoning_trace = as_json(native)
    metrics = None if copied else _metrics(_usage_line(response.lines))
    if metrics is not None and metrics.extra is not None:
        draft.cache_write_tokens = metrics.extra.get("cache_write_tokens")
    draft.provider_id = PROVIDER
    draft.failed_calls |= response.calls.keys() - response.results.keys()
    extra: Extra = {}
    if (reason := _stop_reason(response.lines)) is not None:
        extra["stop_reason"] = reason
    draft.step = Step(
        step_id=0,
        source="agent",
        message=_text(response.blocks),
        timestamp=first.timestamp,
        model_name=_model(first),
        reasoning_content=_thinking(native),
        tool_calls=list(response.calls.values()) or None,
        observation=_observation(response),
        metrics=metrics,
        is_copied_context=True if copied else None,
        llm_call_count=1,
        extra=extra | {"claude_code": _identity(response)},
    )


def _model(line: Line) -> str | None:
    model = line.object("message").get("model")
    return model if isinstance(model, str) and model else None


def _text(every: list[dict[str, Json]]) -> str:
    """Join the text blocks. The API splits a text only to cite; else something stands between."""
    text, apart = "", False
    for block in every:
        if block["type"] != "text":
            apart = True
            continue
        value = block.get("text")
        if isinstance(value, str) and value:
            text += ("\n\n" if apart and text else "") + value
            apart = False
    return text


def _thinking(native: list[dict[str, Json]]) -> str | None:
    texts = [block.get("thinking") for block in native]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text) or None


def _observation(response: Response) -> Observation | None:
    """Return the results in the order of the calls, whatever order they came back in."""
    results = [r for call_id in response.calls for r in response.results.get(call_id, ())]
    return Observation(results=results) if results else None


def _stop_reason(lines: list[Line]) -> str | None:
    reasons = [line.object("message").get("stop_reason") for line in lines]
    return next((reason for reason in reversed(reasons) if isinstance(reason, str)), None)


def _identity(response: Response) -> Extra:
    """Return what finds the lines of a response again, and the order of its blocks."""
    own = {name: value for name, value in response.extra.items() if name != "uuid"}
    if uuids := [line.uuid for line in response.lines if line.uuid is not None]:
        own["uuids"] = uuids
    return own | {"blocks": [block["type"] for block in response.blocks]}


def _output(line: Line) -> int:
    usage = line.object("message").get("usage")
    count = usage.get("output_tokens") if isinstance(usage, dict) else None
    return count if type(count) is int else -1


def _usage_line(lines: list[Line]) -> Line:
    """Return the line whose usage is final: each repeats it, early ones may hold less output."""
    return max(reversed(lines), key=_output)


def _dollars(cost: Json) -> float | None:
    known = isinstance(cost, int | float) and not isinstance(cost, bool)
    return float(cost) if known and 0 <= cost <= _BIGGEST else None


def _metrics(line: Line) -> Metrics | None:
    """Return the tokens of a response; None where the log does not tell them.

    Anthropic's `input_tokens` excludes what was read from or written to the cache.
    """
    usage, cost = line.object("message").get("usage"), line.fields.get("costUSD")
    if not isinstance(usage, dict):
        return None

    def count(name: str) -> int | None:
        value = usage.get(name)
        return value if type(value) is int and 0 <= value <= _BIGGEST else None

    fresh, output = count("input_tokens"), count("output_tokens")
    read, written = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
    if fresh is None and output is None:
        return None
    extra: Extra = {}
    if written is not None:
        extra = {"cache_creation_input_tokens": written, "cache_write_tokens": written}
    for name in ("cache_creation", "server_tool_use"):
        by_kind = usage.get(name)
        if isinstance(by_kind, dict) and any(by_kind.values()):
            extra[name] = by_kind
    if isinstance(tier := usage.get("service_tier"), str):
        extra["service_tier"] = tier
    return Metrics(
        prompt_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        completion_tokens=output,
        cached_tokens=read,
        cost_usd=_dollars(cost),
        extra=extra or None,
    )
