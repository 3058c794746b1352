"""Genuine logs with anything put anywhere: refused, or recorded, exported and valid."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exports import exported_bytes
from people import make_org
from stenograph.errors import InvalidInputError
from stenograph.trajectories.atif.check import parse
from stenograph.trajectories.importers.discovery import read_bytes
from stenograph.trajectories.recording.record import record
from trajectories.importers import claude_code_lines as claude
from trajectories.importers import codex_lines as codex

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
CASES = [
    *(("claude-code", f"claude/{c}/projects") for c in ("c_parallel", "g_compact", "n_redacted")),
    *(("codex", f"codex/{c}/sessions") for c in ("c_parallel", "d_subagent", "e_resume")),
]
ANYTHING = st.sampled_from(
    [
        None, True, 0, -1, 1e308, 2**63, -(2**70), 10**400, "", "x", "\0", "\ud800", "NaN",
        [], {}, [None], [[["a"]]], {"type": None}, {"type": "text"}, {"text": {"a": 1}},
        "2026-03-02T10:00:60Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
        "2026-W10-1", "Exit code " + "9" * 5000, "Process exited with code " + "9" * 5000,
        {"type": "tool_use", "id": 5, "name": 7, "input": "s"},
        {"type": "tool_result", "tool_use_id": ["x"], "content": {"type": "image", "source": 1}},
        [{"type": "image", "source": {"media_type": "image/png", "data": "aGk="}}],
        {"type": "document", "source": {"type": "text", "data": {"x": 1}}},
    ]
).map(deepcopy)  # fmt: skip

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")


@pytest.fixture(scope="module")
def logs():
    """The lines of each case's first log."""
    found = {}
    for kind, folder in CASES:
        path = min((CORPUS / folder).rglob("*.jsonl"))
        found[kind, folder] = path.read_text("utf-8").rstrip("\n").split("\n")
    return found


@pytest.fixture
def org(sqlite_database):
    return make_org(sqlite_database)


def places(value, at=()):
    """Every place in a value, as a path of keys."""
    found = []
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        found.append((*at, key))
        if isinstance(member, dict | list):
            found += places(member, (*at, key))
    return found


def put(value, place, anything):
    for key in place[:-1]:
        value = value[key]
    value[place[-1]] = anything


@pytest.mark.parametrize("case", CASES, ids=[folder for _, folder in CASES])
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_spoilt_log_is_refused_or_becomes_a_valid_session(sqlite_database, org, logs, case, data):
    key = data.draw(st.uuids()).hex
    lines = [json.loads(line) for line in logs[case]]
    for _ in range(data.draw(st.integers(1, 4))):
        line = data.draw(st.sampled_from(lines))
        put(line, data.draw(st.sampled_from(places(line))), data.draw(ANYTHING))
        if data.draw(st.integers(0, 3)) == 0:
            lines.insert(data.draw(st.integers(0, len(lines))), deepcopy(line))
    log = "\n".join(map(json.dumps, lines)).encode()
    log = log[: data.draw(st.sampled_from([len(log), len(log) - 1, len(log) // 2]))]
    try:
        drafts = read_bytes(log, case[0])
    except InvalidInputError:
        return
    for draft in drafts:
        draft.key = key
        taken = sqlite_database.write(lambda tx, d=draft: record(tx, org.owner, d))
        again = sqlite_database.write(lambda tx, d=draft: record(tx, org.owner, d))
        assert {found.change for found in again} == {"unchanged"}
        for tier in ("none", "standard"):
            parse(exported_bytes(sqlite_database, taken[0].session_id, tier))


@pytest.mark.parametrize("cost", [10**400, 10**30, -1, True, "1", None, [], {}])
def test_a_cost_that_is_none_stays_unknown(cost):
    log = claude.Log()
    log.user("q")
    log.answer("m", claude.text("a"), costUSD=cost)
    assert log.read().steps[1].step.metrics.cost_usd is None


@pytest.mark.parametrize("digits", [1, 9, 10, 5000])
def test_an_exit_code_of_any_length(digits):
    told = "9" * digits
    log = claude.Log()
    log.user("q")
    log.answer("m", claude.call("c"))
    log.result("c", f"Exit code {told}", is_error=True)
    (result,) = log.read().steps[1].step.observation.results
    assert result.extra.get("claude_code", {}).get("exit_code") == (
        int(told) if digits < 10 else None
    )
    rollout = codex.Log()
    rollout.message("user", "q")
    rollout.call("c")
    rollout.output("c", f"Process exited with code {told}\nOutput:\nx")
    rollout.event("item_completed", item={"type": [], "id": {}})
    rollout.line("turn_context", collaboration_mode={"settings": told})
    assert rollout.read().steps
