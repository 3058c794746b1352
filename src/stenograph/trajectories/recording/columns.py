"""How an ATIF step lies in the record: what the readings need in columns, the remainder in `rest`.

`split` takes a step apart, `join` puts it together again; `join(split(step))` is the step in its
normal form (schema nulls absent, a lone text part as a plain string). The two live in one file
because neither can change without the other.

On the way out, JSON that nobody needs to look into stays `msgspec.Raw`: it is copied, not parsed.
"""

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from stenograph.clock import iso, parse_iso
from stenograph.trajectories.atif.format import (
    Content,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
)

_BIGGEST = 2**63 - 1
#: Tokens and US dollars of one step above which they are kept as they came, and out of the columns
#: that are added up: the sum of a session has to fit a column's type.
_MOST_TOKENS, _MOST_DOLLARS = 2**40, 1e12
_encode = msgspec.json.encode

MaybeRaw: TypeAlias = Raw | UnsetType


class MetricsRest(Struct, omit_defaults=True):
    """Of a step's metrics, what has no column."""

    prompt_token_ids: MaybeRaw = UNSET
    completion_token_ids: MaybeRaw = UNSET
    logprobs: MaybeRaw = UNSET
    extra: MaybeRaw = UNSET
    #: All of it, where a number does not fit its column or the step is copied context.
    whole: MaybeRaw = UNSET


class StepRest(Struct, omit_defaults=True):
    """Of a step, what has no column."""

    timestamp: str | None = None
    #: The message, where it is not plain text.
    message: MaybeRaw = UNSET
    reasoning_effort: MaybeRaw = UNSET
    #: The step named no model; the column holds the agent's.
    model_unnamed: bool = False
    #: The list of calls was there, and empty.
    no_calls: bool = False
    #: The results in order: n is the result that lies with call n, -n the n-th of `loose`.
    #: Absent: one result for each call, in order. Null: no observation.
    results: list[int] | UnsetType | None = UNSET
    loose: list[Raw] = []
    metrics: MetricsRest | None = None
    is_copied_context: bool | None = None
    llm_call_count: MaybeRaw = UNSET
    observation: MaybeRaw = UNSET
    extra: MaybeRaw = UNSET


class CallRest(Struct, omit_defaults=True):
    """Of a call and its result, what has no column."""

    extra: MaybeRaw = UNSET
    #: The result's content, where it is not plain text; null where it had none.
    content: MaybeRaw = UNSET
    result_extra: MaybeRaw = UNSET
    #: Only a preview of the output was there to be stored.
    excerpt: bool = False
    refs: MaybeRaw = UNSET


class CallColumns(Struct, gc=False):
    """A tool call with the result that answers it, as columns of `tasks` and `task_details`."""

    tool_call_id: str
    name: str
    input: str
    output: str | None
    rest: str | None
    answered: bool

    @property
    def excerpt(self) -> bool:
        """Whether only a preview of the output was there to be stored."""
        return self.rest is not None and '"excerpt":true' in self.rest


class StepColumns(Struct, gc=False):
    """A step as columns; `text` is its message as plain text, whatever its form was."""

    text: str
    reasoning: str | None
    model: str | None
    effort: str | None
    llm_call_count: int | None
    occurred_at: int | None
    rest: str | None
    calls: list[CallColumns]
    #: prompt, completion, cached tokens and cost; None: this step is not billed here.
    usage: tuple[int | None, int | None, int | None, float | None] | None
    copied: bool


def plain(content: Content | None) -> str:
    """Return the text of a message or result: its text parts, one per line."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content or () if part.text is not None)


def holds_audio(columns: StepColumns) -> bool:
    """Tell whether a step has an audio part, in its message or in a result."""
    rests = [columns.rest, *(call.rest for call in columns.calls)]
    return any(rest is not None and '"type":"audio"' in rest for rest in rests)


def _text(value: object) -> str:
    return _encode(value).decode()


def _raw(value: object) -> Raw:
    return Raw(_encode(value))


def _maybe(value: object) -> MaybeRaw:
    return UNSET if value is None else _raw(value)


def _parts(content: Content | None) -> MaybeRaw:
    """Return the content where it is more than a text: several parts, media, none at all."""
    if isinstance(content, str):
        return UNSET
    if content is not None and len(content) == 1 and content[0].text is not None:
        return UNSET
    return _raw(content)


def _rest(value: Struct) -> str | None:
    text = _encode(value)
    return None if text == b"{}" else text.decode()


def split(step: Step, agent_model: str | None) -> StepColumns:
    """Take a step apart. `agent_model` is the model of a step that names none itself."""
    rest = StepRest(
        message=_parts(step.message),
        extra=_maybe(step.extra),
        is_copied_context=step.is_copied_context,
    )
    occurred_at = _moment(step, rest)
    calls: list[CallColumns] = []
    usage = None
    if step.source == "agent":
        calls = _split_calls(step, rest)
        usage = _split_metrics(step, rest)
        rest.model_unnamed = step.model_name is None
        if step.reasoning_effort is not None and not isinstance(step.reasoning_effort, str):
            rest.reasoning_effort = _raw(step.reasoning_effort)
    else:
        rest.observation = _maybe(step.observation)
    count = step.llm_call_count
    if count is not None and (step.source != "agent" or count > _BIGGEST):
        rest.llm_call_count = _raw(count)
    effort = step.reasoning_effort
    return StepColumns(
        text=plain(step.message),
        reasoning=step.reasoning_content,
        model=agent_model if step.model_name is None else step.model_name,
        effort=None if effort is None else str(effort),
        llm_call_count=None if isinstance(rest.llm_call_count, Raw) else count,
        occurred_at=occurred_at,
        rest=_rest(rest),
        calls=calls,
        usage=usage,
        copied=bool(step.is_copied_context),
    )


def _moment(step: Step, rest: StepRest) -> int | None:
    at = None if step.timestamp is None else parse_iso(step.timestamp)
    if step.timestamp is not None and (at is None or iso(at) != step.timestamp):
        rest.timestamp = step.timestamp
    return at


def _split_calls(step: Step, rest: StepRest) -> list[CallColumns]:
    calls = step.tool_calls or []
    rest.no_calls = step.tool_calls is not None and not calls
    waiting: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        waiting.setdefault(call.tool_call_id, []).append(index)
    answers: dict[int, ObservationResult] = {}
    order: list[int] | None = None
    if step.observation is not None:
        order = []
        for result in step.observation.results:
            open_calls = waiting.get(result.source_call_id) if result.source_call_id else None
            if open_calls:
                index = open_calls.pop(0)
                answers[index] = result
                order.append(index)
            else:
                rest.loose = [*rest.loose, _raw(result)]
                order.append(-len(rest.loose))
    expected = list(range(len(calls))) if calls else None
    if order != expected:
        rest.results = order
    return [_split_call(call, answers.get(index)) for index, call in enumerate(calls)]


def _split_call(call: ToolCall, result: ObservationResult | None) -> CallColumns:
    rest = CallRest(extra=_maybe(call.extra))
    if result is not None:
        rest.content = _parts(result.content)
        rest.result_extra = _maybe(result.extra)
        rest.refs = _maybe(result.subagent_trajectory_ref)
    return CallColumns(
        tool_call_id=call.tool_call_id,
        name=call.function_name,
        input=_text(call.arguments),
        output=None if result is None or result.content is None else plain(result.content),
        rest=_rest(rest),
        answered=result is not None,
    )


def _split_metrics(
    step: Step, rest: StepRest
) -> tuple[int | None, int | None, int | None, float | None] | None:
    metrics = step.metrics
    if metrics is None:
        return None
    counts = (metrics.prompt_tokens, metrics.completion_tokens, metrics.cached_tokens)
    rest.metrics = MetricsRest(
        prompt_token_ids=_maybe(metrics.prompt_token_ids),
        completion_token_ids=_maybe(metrics.completion_token_ids),
        logprobs=_maybe(metrics.logprobs),
        extra=_maybe(metrics.extra),
    )
    cost = metrics.cost_usd
    beyond = any(n is not None and n > _MOST_TOKENS for n in counts)
    beyond = beyond or (cost is not None and cost > _MOST_DOLLARS)
    if step.is_copied_context or beyond:
        rest.metrics = MetricsRest(whole=_raw(metrics))
    if step.is_copied_context:
        return None
    if rest.metrics == MetricsRest():
        rest.metrics = None
    if isinstance(rest.metrics and rest.metrics.whole, Raw):
        return (None, None, None, None)
    return (*counts, cost)


_decode_step = msgspec.json.Decoder(StepRest).decode
_decode_call = msgspec.json.Decoder(CallRest).decode
_NO_STEP_REST, _NO_CALL_REST = StepRest(), CallRest()


def _field(value: MaybeRaw) -> Any:
    return None if value is UNSET else value


def join(
    step_id: int,
    source: Any,
    columns: StepColumns,
) -> Step:
    """Put a step together; JSON nobody looked into is `Raw` in it, ready to be encoded."""
    rest = _decode_step(columns.rest) if columns.rest else _NO_STEP_REST
    step = Step(
        step_id=step_id,
        source=source,
        message=columns.text if rest.message is UNSET else rest.message,  # type: ignore[arg-type]
        timestamp=rest.timestamp,
        is_copied_context=rest.is_copied_context,
        llm_call_count=columns.llm_call_count,
        extra=_field(rest.extra),
    )
    if rest.llm_call_count is not UNSET:
        step.llm_call_count = rest.llm_call_count  # type: ignore[assignment]
    if step.timestamp is None and columns.occurred_at is not None:
        step.timestamp = iso(columns.occurred_at)
    if source != "agent":
        step.observation = _field(rest.observation)
        return step
    step.reasoning_content = columns.reasoning
    step.model_name = None if rest.model_unnamed else columns.model
    step.reasoning_effort = (
        columns.effort if rest.reasoning_effort is UNSET else _field(rest.reasoning_effort)
    )
    _join_calls(step, columns.calls, rest)
    step.metrics = _join_metrics(columns, rest.metrics)
    return step


def _join_calls(step: Step, calls: list[CallColumns], rest: StepRest) -> None:
    if not calls and rest.results is UNSET:
        step.tool_calls = [] if rest.no_calls else None
        return
    if rest.results is UNSET and all(call.rest is None for call in calls):
        _join_plain_calls(step, calls)
        return
    rests = [_decode_call(call.rest) if call.rest else _NO_CALL_REST for call in calls]
    if calls or rest.no_calls:
        step.tool_calls = [
            ToolCall(
                tool_call_id=call.tool_call_id,
                function_name=call.name,
                arguments=Raw(call.input),  # type: ignore[arg-type]
                extra=_field(more.extra),
            )
            for call, more in zip(calls, rests, strict=True)
        ]
    if rest.results is None:
        return
    if rest.results is UNSET:
        order = [n for n, c in enumerate(calls) if c.answered or rests[n].content is not UNSET]
        if not order:
            return
    else:
        order = rest.results
    step.observation = Observation(
        results=[
            _join_result(calls[n], rests[n]) if n >= 0 else rest.loose[-n - 1]  # type: ignore[misc]
            for n in order
        ]
    )


def _join_plain_calls(step: Step, calls: list[CallColumns]) -> None:
    """As `_join_calls`, for calls without a rest, which nearly all are."""
    step.tool_calls = [
        ToolCall(tool_call_id=c.tool_call_id, function_name=c.name, arguments=Raw(c.input))  # type: ignore[arg-type]
        for c in calls
    ]
    results = [
        ObservationResult(source_call_id=c.tool_call_id, content=c.output)
        for c in calls
        if c.answered
    ]
    if results:
        step.observation = Observation(results=results)


def _join_result(call: CallColumns, rest: CallRest) -> ObservationResult:
    return ObservationResult(
        source_call_id=call.tool_call_id,
        content=call.output if rest.content is UNSET else _content(rest.content),
        subagent_trajectory_ref=_field(rest.refs),
        extra=_field(rest.result_extra),
    )


def _content(value: MaybeRaw) -> Any:
    return None if isinstance(value, Raw) and bytes(value) == b"null" else _field(value)


def _join_metrics(columns: StepColumns, rest: MetricsRest | None) -> Any:
    if rest is not None and rest.whole is not UNSET:
        return rest.whole
    if columns.usage is None:
        return None
    prompt, completion, cached, cost = columns.usage
    metrics = Metrics(
        prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached, cost_usd=cost
    )
    if rest is not None:
        metrics.prompt_token_ids = _field(rest.prompt_token_ids)
        metrics.completion_token_ids = _field(rest.completion_token_ids)
        metrics.logprobs = _field(rest.logprobs)
        metrics.extra = _field(rest.extra)
    return metrics
