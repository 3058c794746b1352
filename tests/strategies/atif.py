"""Every document within the ATIF format, as hypothesis strategies.

`trajectories()` gives structs that `check.problems` has nothing against: all versions, nested
children, references that resolve and some that do not, media, copied context, orphan results,
numbers of any size. Text holds no lone surrogates; `with_surrogates()` gives documents that do.
"""

import msgspec
from hypothesis import strategies as st

from stenograph.trajectories.atif import media
from stenograph.trajectories.atif.format import (
    Agent,
    ContentPart,
    FinalMetrics,
    MediaSource,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    SubagentTrajectoryRef,
    ToolCall,
    Trajectory,
)

#: Text that something somewhere has trouble with.
AWKWARD = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "line\nline\r\n",
    "\u2028\u2029\x85",
    "🙂 → “é” 𝔘",
    "\ufeff",
    '"\\',
    "null",
    "x" * 60,
)


def text(max_size: int = 12) -> st.SearchStrategy[str]:
    """Any text without lone surrogates, NUL and astral characters included."""
    plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=max_size)
    return st.sampled_from(AWKWARD) | plain


#: Identifiers: short, long (60 characters, which masking would take for a secret), odd.
ids = st.sampled_from(["c1", "call/~1", "toolu_" + "a1B2" * 13 + "xy", "é🙂"]) | st.text(
    "abc123-_", min_size=1, max_size=60
)
numbers = st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text(8), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(text(8), values, max_size=3)
extras = st.none() | st.just({}) | objects
times = st.none() | st.sampled_from(
    [
        "2025-10-16T14:30:00Z",
        "2025-10-16T14:30:00.123456Z",
        "2025-10-16T14:30:00.1+02:00",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59.999999-23:59",
        "2024-02-29",
        "2025-W07-5",
        "20251016T143000Z",
    ]
)
counts = st.none() | st.integers(0, 5000) | st.sampled_from([0, 2**53 + 1, 2**63, 2**70])
costs = st.none() | st.floats(0, 1000) | st.just(0.0)
paths = st.sampled_from(
    ["media/a.png", "b.wav", "./c", "https://example.test/d.png", "data:image/png;base64,iVBORw0="]
)
images = st.builds(MediaSource, media_type=st.sampled_from(sorted(media.IMAGES)), path=paths)
sounds = st.builds(
    MediaSource,
    media_type=st.sampled_from(sorted(media.AUDIO)),
    path=paths,
    duration_sec=st.none() | st.floats(0, 1e6),
)
content_parts = (
    st.builds(ContentPart, type=st.just("text"), text=text())
    | st.builds(ContentPart, type=st.just("image"), source=images)
    | st.builds(ContentPart, type=st.just("audio"), source=sounds)
)
contents = text(40) | st.lists(content_parts, max_size=3)
metrics = st.builds(
    Metrics,
    prompt_tokens=counts,
    completion_tokens=counts,
    cached_tokens=counts,
    cost_usd=costs,
    prompt_token_ids=st.none() | st.lists(st.integers(0, 2**70), max_size=3),
    completion_token_ids=st.none() | st.lists(st.integers(0, 2**17), max_size=3),
    logprobs=st.none() | st.lists(st.floats(-50, 0), max_size=3),
    extra=extras
    | st.fixed_dictionaries({"cache_write_tokens": st.integers(0, 99)})
    | st.fixed_dictionaries({"cache_creation_input_tokens": st.integers(0, 99)}),
)
final_metrics = st.builds(
    FinalMetrics,
    total_prompt_tokens=counts,
    total_completion_tokens=counts,
    total_cached_tokens=counts,
    total_cost_usd=costs,
    total_steps=counts,
    extra=extras,
)
agents = st.builds(
    Agent,
    name=text(),
    version=text(),
    model_name=st.none() | text(),
    tool_definitions=st.none() | st.lists(objects, max_size=2),
    extra=extras,
)
calls = st.builds(ToolCall, tool_call_id=ids, function_name=text(), arguments=objects, extra=extras)


@st.composite
def references(draw, child_ids: list[str], session_only: bool) -> SubagentTrajectoryRef:
    """A reference: to a child that is embedded, to one that is not, to a file, to a session."""
    ref = SubagentTrajectoryRef(session_id=draw(st.none() | ids), extra=draw(extras))
    kind = draw(st.sampled_from(["child", "file", "both", "session", "nowhere"]))
    if kind == "session" and session_only:
        ref.session_id = draw(ids)
        return ref
    if kind in ("file", "both"):
        ref.trajectory_path = draw(st.sampled_from(["sub/agent.json", "s3://bucket/child.json"]))
    if kind != "file":
        embedded = st.sampled_from(child_ids) if child_ids and kind != "nowhere" else ids
        ref.trajectory_id = draw(embedded)
    return ref


@st.composite
def observations(
    draw, call_ids: list[str], child_ids: list[str], session_only: bool
) -> Observation:
    """Results for some of the calls, in any order, and results of no call."""
    named = st.sampled_from(call_ids) if call_ids else st.none()
    results = st.builds(
        ObservationResult,
        source_call_id=st.none() | named,
        content=st.none() | contents,
        subagent_trajectory_ref=st.none()
        | st.lists(references(child_ids, session_only), max_size=2),
        extra=extras | st.fixed_dictionaries({"is_error": st.booleans()}),
    )
    return Observation(results=draw(st.lists(results, max_size=4)))


@st.composite
def steps(draw, step_id: int, child_ids: list[str], session_only: bool) -> Step:
    """One step of any source."""
    step = Step(
        step_id=step_id,
        source=draw(st.sampled_from(["user", "agent", "agent", "system"])),
        message=draw(contents),
        timestamp=draw(times),
        is_copied_context=draw(st.sampled_from([None, None, True, False])),
        extra=draw(extras | st.just({"context_management": {"type": "compaction"}})),
    )
    call_ids: list[str] = []
    if step.source == "agent":
        step.model_name = draw(st.none() | text())
        step.reasoning_effort = draw(st.none() | st.sampled_from(["high", 0.5, "0.5"]))
        step.tool_calls = draw(st.none() | st.lists(calls, max_size=3))
        step.llm_call_count = draw(st.sampled_from([None, None, 0, 1, 3]))
        if step.llm_call_count != 0:
            step.reasoning_content = draw(st.none() | text(40))
            step.metrics = draw(st.none() | metrics)
        call_ids = [call.tool_call_id for call in step.tool_calls or ()]
    if draw(st.booleans()):
        step.observation = draw(observations(call_ids, child_ids, session_only))
    return step


@st.composite
def trajectories(draw, max_depth: int = 2) -> Trajectory:
    """A document with children up to `max_depth` levels below it."""
    minor = draw(st.sampled_from([7, 8, 7, 8, 0, 1, 2, 3, 4, 5, 6]))
    children: list[Trajectory] = []
    if max_depth > 0 and draw(st.sampled_from([True, False, False])):
        named = draw(st.lists(ids, min_size=1, max_size=2, unique=True))
        for child_id in named:
            child = draw(trajectories(max_depth - 1))
            child.trajectory_id = child_id
            children.append(child)
    child_ids = [child.trajectory_id for child in children if child.trajectory_id is not None]
    count = draw(st.integers(1, 4))
    return Trajectory(
        schema_version=f"ATIF-v1.{minor}",
        agent=draw(agents),
        steps=[draw(steps(n, child_ids, minor <= 6)) for n in range(1, count + 1)],
        session_id=draw(ids if minor <= 6 else st.none() | ids),
        trajectory_id=draw(st.none() | ids),
        notes=draw(st.none() | text()),
        final_metrics=draw(st.none() | final_metrics),
        continued_trajectory_ref=draw(st.none() | st.just("trajectory.cont-1.json")),
        subagent_trajectories=children or draw(st.sampled_from([None, None, []])),
        extra=draw(extras),
    )


@st.composite
def with_surrogates(draw) -> dict[str, object]:
    """A document as JSON values with at least one lone surrogate somewhere in its texts."""
    document = msgspec.to_builtins(draw(trajectories(max_depth=1)))
    broken = draw(st.sampled_from(["\ud800", "\udfff", "a\ud83d", "\udc00\ud800", "ok 🙂 \ud83d!"]))
    place = draw(st.sampled_from(["message", "extra", "key", "agent"]))
    if place == "message":
        document["steps"][0]["message"] = broken
    elif place == "extra":
        document["steps"][0]["extra"] = {"a": [{"b": broken}]}
    elif place == "key":
        document["extra"] = {broken: 1}
    else:
        document["agent"]["name"] = broken
    return document
