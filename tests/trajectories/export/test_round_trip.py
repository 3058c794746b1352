"""ATIF → record → ATIF: value-identical in the ephemeral tier (docs/decisions/0011)."""

import json

import msgspec
from hypothesis import HealthCheck, given, settings

from exports import exported, exported_bytes, without_additions
from oracles import atif_package, harbor
from stenograph.trajectories.atif.writing import encode, normal_form
from stenograph.trajectories.importers import atif
from stenograph.trajectories.recording.record import record
from strategies.atif import trajectories

RELAXED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def take_in(database, org, document: bytes, *, anew: bool = False) -> str:
    """Import a document; `anew`: as if no document had been imported before."""
    draft = atif.read(document)
    if anew:
        database.write(lambda tx: tx.run("DELETE FROM imports"))
    return database.write(lambda tx: record(tx, org.owner, draft))[0].session_id


def plain(document) -> dict:
    """The document as values, with what an export writes anew left out."""
    return without_additions(json.loads(encode(normal_form(document))))


def expected(document: dict, session_id: str) -> dict:
    """What an export may add to a document that did not say who it is."""
    return {"session_id": session_id, "trajectory_id": session_id, **document}


@RELAXED
@given(trajectories())
def test_every_document_comes_back(database, org, document):
    session_id = take_in(database, org, encode(document), anew=True)
    got = without_additions(exported(database, session_id))
    want = expected(plain(document), session_id)
    for mine, theirs in zip(
        got.get("subagent_trajectories", ()), want.get("subagent_trajectories", ()), strict=True
    ):
        theirs.setdefault("session_id", mine["session_id"])
    assert {k: v for k, v in got.items() if k != "subagent_trajectories"} == {
        k: v for k, v in want.items() if k != "subagent_trajectories"
    }


@RELAXED
@given(trajectories())
def test_every_export_satisfies_both_oracles(database, org, document):
    session_id = take_in(database, org, encode(document), anew=True)
    for tier in ("standard", "ephemeral"):
        exported_document = exported_bytes(database, session_id, tier)
        assert harbor.validate(exported_document) == []
        assert atif_package.validate(exported_document) == []


@RELAXED
@given(trajectories())
def test_totals_are_the_sums_of_the_steps(database, org, document):
    """Own totals from own steps, a document's with its children's (faults 11, 41)."""
    session_id = take_in(database, org, encode(document), anew=True)
    check_totals(exported(database, session_id))


def check_totals(document: dict) -> dict:
    """Compare a document's account with its steps; returns the sums including children."""
    own = dict.fromkeys(("prompt", "completion", "cached"))
    for step in document["steps"]:
        metrics = step.get("metrics") or {}
        if step.get("is_copied_context"):
            continue
        for name in own:
            if (part := metrics.get(f"{name}_tokens")) is not None:
                own[name] = (own[name] or 0) + part
    session = document["final_metrics"]["extra"]["session_totals"]
    whole = dict(own)
    for child in document.get("subagent_trajectories", ()):
        below = check_totals(child)
        for name, part in below.items():
            if part is not None:
                whole[name] = (whole[name] or 0) + part
    for name in own:
        assert session.get(f"total_{name}_tokens") == own[name]
        assert document["final_metrics"].get(f"total_{name}_tokens") == whole[name]
    assert session["total_steps"] == len(document["steps"])
    assert document["final_metrics"]["total_steps"] == len(document["steps"])
    return whole


def document(*steps: dict, **root) -> bytes:
    numbered = [{"step_id": n, **step} for n, step in enumerate(steps, 1)]
    return msgspec.json.encode(
        {
            "schema_version": "ATIF-v1.7",
            "session_id": "s",
            "agent": {"name": "a", "version": "1"},
            "steps": numbered,
            **root,
        }
    )


USER = {"source": "user", "message": "go"}


def agent(**fields) -> dict:
    return {"source": "agent", "message": "", **fields}


def test_an_export_imported_again_is_the_same_session(database, org):
    session_id = take_in(database, org, document(USER, agent(metrics={"prompt_tokens": 3})))
    again = exported_bytes(database, session_id)
    assert take_in(database, org, again) == session_id


def test_copied_context_is_in_no_total(database, org):
    """Fault 11: a resumed run's file counts only what is new in it."""
    copied = {"is_copied_context": True, "metrics": {"prompt_tokens": 100}}
    steps = (USER, agent(**copied), agent(**copied), agent(metrics={"prompt_tokens": 50}))
    totals = exported(database, take_in(database, org, document(*steps)))["final_metrics"]
    assert totals["total_prompt_tokens"] == 50


def test_a_free_model_costs_zero_and_an_unknown_cost_is_absent(database, org):
    """Faults 22 and 51."""
    free = exported(
        database, take_in(database, org, document(USER, agent(metrics={"cost_usd": 0.0})))
    )
    assert free["final_metrics"]["total_cost_usd"] == 0
    partly = document(
        USER, agent(metrics={"cost_usd": 0.5}), agent(metrics={"prompt_tokens": 1}), session_id="p"
    )
    totals = exported(database, take_in(database, org, partly))["final_metrics"]
    assert "total_cost_usd" not in totals
    assert totals["total_prompt_tokens"] == 1


def test_cached_zero_stays_zero(database, org):
    """Fault 43."""
    usage = {"prompt_tokens": 10, "cached_tokens": 0, "completion_tokens": 5}
    got = exported(database, take_in(database, org, document(USER, agent(metrics=usage))))
    assert got["steps"][1]["metrics"] == usage
    assert got["final_metrics"]["total_cached_tokens"] == 0


def test_results_without_calls_are_kept_in_order(database, org):
    """Fault 31."""
    step = agent(observation={"results": [{"content": "x"}, {"content": "y"}]})
    got = exported(database, take_in(database, org, document(USER, step)))
    assert got["steps"][1]["observation"] == step["observation"]


def test_a_result_with_only_structured_data_survives(database, org):
    """Fault 2."""
    step = agent(
        tool_calls=[{"tool_call_id": "c1", "function_name": "f", "arguments": {}}],
        observation={"results": [{"source_call_id": "c1", "extra": {"tool_result": {"ok": True}}}]},
    )
    got = exported(database, take_in(database, org, document(USER, step)))
    assert got["steps"][1]["observation"] == step["observation"]


def test_no_end_is_invented_and_call_extras_are_kept(database, org):
    """Fault 18."""
    call = {"tool_call_id": "c", "function_name": "f", "arguments": {}, "extra": {"x": 1}}
    steps = (
        {**USER, "timestamp": "1970-01-01T00:00:00Z"},
        agent(timestamp="1970-01-01T00:01:40Z", tool_calls=[call]),
    )
    got = exported(database, take_in(database, org, document(*steps)))
    assert got["steps"] == [{"step_id": n, **step} for n, step in enumerate(steps, 1)]


def test_text_is_utf8_whatever_the_locale(database, org):
    """Fault 20."""
    text = "→ “é” 🙂"
    got = exported_bytes(database, take_in(database, org, document({**USER, "message": text})))
    assert text.encode() in got


def test_one_step_per_model_call(database, org):
    """Fault 19: 23 calls are 23 agent steps."""
    got = exported(database, take_in(database, org, document(USER, *[agent()] * 23)))
    assert sum(step["source"] == "agent" for step in got["steps"]) == 23
