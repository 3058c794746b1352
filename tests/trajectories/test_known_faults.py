"""What others got wrong when they exported and imported sessions, and what is right.

One test for each entry of the log of known faults, by its number: the entry's input goes in as a
log does, and comes out of an export, a reading or a command.
"""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from exports import exported, exported_bytes, row_id
from oracles import atif_package, harbor
from stenograph.cli import main
from stenograph.errors import InvalidInputError
from stenograph.events.journal import Event, append
from stenograph.trajectories.atif.check import parse
from stenograph.trajectories.export.document import trajectory
from stenograph.trajectories.importers.discovery import find, read_bytes, read_source
from stenograph.trajectories.recording.record import record
from stenograph.trajectories.redaction import Redactor
from trajectories.atif.documents import CALL, agent, audio, document, image, results, system, user
from trajectories.importers import claude_code_lines as claude
from trajectories.importers import codex_lines as codex

NUMBERS = (
    1, 2, 4, 6, 8, 9, 11, 12, 14, 15, 17, 18, 19, 20, 22, 23, 24, 26, 27, 28, 29, 30, 31, 33, 36,
    37, 38, 40, 41, 43, 44, 45, 46, 47, 48, 50, 51, 52, 53, 55, 56,
)  # fmt: skip
SAMPLES = Path(__file__).parents[2] / "samples"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def test_every_entry_has_a_test():
    named = [re.match(r"test_fault_(\d\d)_", name) for name in globals()]
    assert sorted({int(found[1]) for found in named if found}) == list(NUMBERS)


# Ways in and out


def take_in(database, org, log) -> list:
    """Import a log: bytes, a document as a value, or lines. Returns what was recorded."""
    if isinstance(log, dict):
        log = json.dumps(log).encode()
    drafts = read_bytes(log if isinstance(log, bytes) else log.bytes())
    return database.write(
        lambda tx: [found for draft in drafts for found in record(tx, org.owner, draft)]
    )


def round_trip(database, org, log, tier="ephemeral") -> dict:
    """Import a log and return the document of its first session."""
    return exported(database, take_in(database, org, log)[0].session_id, tier)


def steps_of(found: dict, source: str) -> list[dict]:
    return [step for step in found["steps"] if step["source"] == source]


def results_of(found: dict) -> list[dict]:
    observed = (step.get("observation") for step in found["steps"])
    return [result for seen in observed if seen for result in seen["results"]]


def totals(found: dict) -> dict:
    return {k: v for k, v in found["final_metrics"].items() if k != "extra"}


def own_totals(found: dict) -> dict:
    return found["final_metrics"]["extra"]["session_totals"]


def post(api, found) -> tuple[int, dict]:
    """Import over HTTP; returns status and body."""
    body = found if isinstance(found, bytes) else json.dumps(found).encode()
    answer = api.post(f"{api.v3}/sessions/import", content=body)
    return answer.status_code, answer.json()


def sessions(database) -> int:
    with database.read() as tx:
        return tx.value("SELECT count(*) FROM conversations")


@pytest.fixture
def steno(database, database_location, tmp_path):
    """Run a command over the test's database; returns its output."""

    def run(*arguments, status=0):
        place = ["--data", str(tmp_path / "data"), "--database", database_location.url]
        done = CliRunner().invoke(main.app, [*map(str, arguments), *place])
        assert done.exit_code == status, done.output
        return done.output

    return run


# A. Public reports


def test_fault_01_an_object_as_result_is_text_and_stays_an_object_beside_it(database, org):
    value = {"status": "closed", "n": 3}
    log = claude.Log()
    log.user("go")
    log.answer("m1", claude.call("c1"))
    log.result("c1", value)
    found = round_trip(database, org, log)
    (result,) = results_of(found)
    assert json.loads(result["content"]) == value
    assert result["extra"]["tool_result"] == value
    assert results_of(round_trip(database, org, found)) == [result]


def test_fault_02_a_result_without_text_survives(database, org):
    found = {"source_call_id": "c1", "extra": {"tool_result": {"ok": True}}}
    assert results_of(round_trip(database, org, document(user(), results(found)))) == [found]


def test_fault_04_a_failed_attempt_and_its_retry_are_one_step(database, org):
    log = claude.Log()
    log.user("go", timestamp="2026-03-02T10:00:00Z")
    log.line("system", subtype="api_error", retryAttempt=1)
    log.answer("m1", claude.text("done"))
    found = round_trip(database, org, log)
    assert [step["source"] for step in found["steps"]] == ["user", "agent"]
    assert found["steps"][1]["llm_call_count"] == 1
    assert found["steps"][1]["extra"]["claude_code"]["failed_attempts"] == 1
    assert found["steps"][0]["timestamp"] == "2026-03-02T10:00:00Z"


def test_fault_06_only_what_is_certain_is_paired(database, org):
    calls = [{**CALL, "tool_call_id": i, "arguments": {"p": "x"}} for i in ("c1", "c2")]
    named, unnamed = {"source_call_id": "c2", "content": "2"}, {"content": "?"}
    found = round_trip(database, org, document(user(), results(named, unnamed, calls=calls)))
    assert results_of(found) == [named, unnamed]


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_fault_08_an_orphan_result_names_no_call(database, org, kind):
    if kind == "claude":
        log = claude.Log()
        log.result("gone", "x")
        log.user("go")
        log.answer("m1", claude.text("done"))
    else:
        log = codex.Log()
        log.output("gone", "x")
        log.message("user", "go")
        log.message("assistant", "done")
    (kept,) = take_in(database, org, log)
    found = exported_bytes(database, kept.session_id)
    assert harbor.validate(found) == []
    (result,) = results_of(json.loads(found))
    assert (result["content"], result.get("source_call_id")) == ("x", None)
    (step,) = [s for s in json.loads(found)["steps"] if s.get("observation")]
    assert "gone" in json.dumps(step["extra"])
    assert len(kept.warnings) == 1


@pytest.mark.parametrize(
    ("metrics", "pointer"),
    [("oops", "/steps/0/metrics"), ({"prompt_tokens": "abc"}, "/steps/0/metrics/prompt_tokens")],
)
def test_fault_09_metrics_of_a_wrong_type_are_refused_with_a_pointer(api, metrics, pointer):
    status, body = post(api, document(agent(metrics=metrics)))
    assert status == 400
    assert f"{pointer}:" in body["message"]
    assert sessions(api.database) == 0


def test_fault_11_resumed_history_counts_once(database, org):
    def spent(tokens, **fields):
        return agent(metrics={"prompt_tokens": tokens}, **fields)

    copied = [spent(100, is_copied_context=True)] * 2
    first = round_trip(database, org, document(user(), spent(100)))
    second = round_trip(database, org, document(*copied, spent(50), session_id="resumed"))
    found = [totals(one)["total_prompt_tokens"] for one in (first, second)]
    assert (found, sum(found)) == ([100, 50], 150)


def test_fault_12_totals_are_counted_and_a_claim_that_differs_is_told(database, org):
    claim = {"total_steps": 3}
    (kept,) = take_in(
        database, org, document(user(), agent(), user(), agent(), final_metrics=claim)
    )
    assert totals(exported(database, kept.session_id))["total_steps"] == 4
    assert [warning for warning in kept.warnings if "/final_metrics/total_steps" in warning]


def test_fault_14_of_two_calls_of_one_tool_the_one_that_failed_failed(api):
    calls = [{**CALL, "tool_call_id": i} for i in ("c1", "c2")]
    ok, bad = (
        {"source_call_id": "c1", "content": "1"},
        {"source_call_id": "c2", "content": "2", "extra": {"is_error": True}},
    )
    (kept,) = take_in(api.database, api.org, document(user(), results(ok, bad, calls=calls)))
    assert results_of(exported(api.database, kept.session_id)) == [ok, bad]
    events = api.get(f"{api.v3}/sessions/{kept.session_id}/events").json()["items"]
    ended = {e["data"]["tool_call_id"]: e["data"]["status"] for e in events if e["type"] == "tool"}
    assert ended == {"c1": "completed", "c2": "failed"}


def test_fault_15_every_error_is_listed_and_nothing_is_stored(api):
    status, body = post(api, {"schema_version": "ATIF-v1.7", "steps": [None]})
    assert status == 400
    assert sessions(api.database) == 0
    with pytest.raises(InvalidInputError) as refused:
        parse(b'{"schema_version":"ATIF-v1.7","steps":[null, {"step_id":2}]}')
    pointers = {problem["pointer"] for problem in refused.value.details["problems"]}
    assert {"/agent", "/steps/0", "/steps/1/source", "/steps/1/message"} <= pointers
    assert body["error"] == "invalid_request"


def test_fault_17_a_childs_error_is_the_childs(api):
    failed = {"source_call_id": "c1", "content": "x", "extra": {"is_error": True}}
    child = document(user(), results(failed), agent(message="mended"), trajectory_id="child")
    ref = {"source_call_id": "c1", "subagent_trajectory_ref": [{"trajectory_id": "child"}]}
    whole = document(user(), results({**ref, "content": "ok"}), subagent_trajectories=[child])
    parent, below = take_in(api.database, api.org, whole)
    for kept, status in ((parent, "completed"), (below, "failed")):
        read = api.get(f"{api.v3}/sessions/{kept.session_id}/events").json()
        assert {e["data"]["status"] for e in read["items"] if e["type"] == "tool"} == {status}
        assert (read["session"]["status"], read["session"]["outcome"]) == ("exit", "success")
    found = exported(api.database, parent.session_id)
    assert "is_error" not in json.dumps(found["steps"])


def test_fault_18_no_end_is_invented_and_extras_of_calls_are_kept(api):
    call = {**CALL, "extra": {"x": 1}}
    steps = (
        user(timestamp="1970-01-01T00:00:00Z"),
        agent(timestamp="1970-01-01T00:01:40Z", tool_calls=[call]),
    )
    (kept,) = take_in(api.database, api.org, document(*steps))
    found = exported(api.database, kept.session_id)["steps"]
    assert found == [{"step_id": n, **step} for n, step in enumerate(steps, 1)]
    with api.database.read() as tx:
        run = tx.value("SELECT public_id FROM runs")
    read = api.get(f"{api.agent}/workspaces/{kept.workspace_id}/runs/{run}").json()["run"]
    told = [{"started_at", "completed_at"} & task.keys() for task in read["tasks"]]
    assert told == [{"completed_at"}, {"started_at"}]


def test_fault_19_every_model_call_is_a_step(database, org):
    found = round_trip(database, org, document(user(), *[agent()] * 23))
    assert len(steps_of(found, "agent")) == 23


def test_fault_20_files_are_utf8_in_every_locale(steno, database, database_location, tmp_path):
    text = "→ “é” 🙂"
    (tmp_path / "in.json").write_bytes(json.dumps(document(user(message=text))).encode())
    steno("import", tmp_path / "in.json")
    with database.read() as tx:
        session_id = tx.value("SELECT public_id FROM conversations")

    def export(to: Path) -> int:
        command = [sys.executable, "-c", "from stenograph.app import main; main()", "export"]
        place = ["--data", tmp_path / "data", "--database", database_location.url]
        environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        command += [session_id, "-o", to, *place]
        return subprocess.run(command, env=environment, check=False).returncode

    assert export(tmp_path / "out.json") == 0
    assert text.encode() in (tmp_path / "out.json").read_bytes()
    assert export(tmp_path / "nowhere" / "out.json") != 0


def test_fault_22_usage_is_one_figure_everywhere_and_the_unknown_is_no_zero(api):
    log = claude.Log()
    log.user("go")
    log.answer("m1", claude.text("a"), usage=claude.USAGE)
    log.answer("m2", claude.text("b"), usage=None)
    (kept,) = take_in(api.database, api.org, log)
    first, second = steps_of(exported(api.database, kept.session_id), "agent")
    assert first["metrics"].pop("extra")["cache_creation_input_tokens"] == 5
    assert first["metrics"] == {"prompt_tokens": 115, "cached_tokens": 100, "completion_tokens": 7}
    assert "metrics" not in second
    found = totals(exported(api.database, kept.session_id))
    read = api.get(f"{api.v3}/sessions/{kept.session_id}").json()
    path = f"{api.agent}/workspaces/{kept.workspace_id}/conversations/{kept.session_id}"
    about = api.get(path).json()["conversation"]["usage_summary"]
    assert found["total_prompt_tokens"] == read["usage"]["input_tokens"] == about["input_tokens"]
    assert about["input_tokens"] == 115
    assert about["cache_read_tokens"] == read["usage"]["cached_input_tokens"] == 100
    assert "total_cost_usd" not in found
    assert (read["cost_usd"], about["cost_complete"]) == (None, False)


@pytest.mark.parametrize("family", ["agent", "v3"])
def test_fault_23_pages_hold_every_event_once_in_order(api, family):
    workspace, conversation = _conversation(api)
    if family == "agent":
        path = f"{api.agent}/workspaces/{workspace}/conversations/{conversation}/events?limit=100"
    else:
        path = f"{api.v3}/sessions/{conversation}/events?limit=100"
    _happen(api.database, conversation, 317)
    seen: list[int] = []
    after = None
    for page in range(5):
        if family == "agent":
            read = api.get(path + (f"&after={after}" if after else "")).json()
            found, after = read["events"], read["pagination"]["next_after"] or after
            seen += [event["sequence"] for event in found]
        else:
            key = api.key("api", wanted=("sessions:read", "sessions:debug"))
            read = api.get(path + (f"&after_seq={after}" if after else ""), key=key).json()
            found, after = read["items"], read["next_seq"]
            seen += [event["seq"] for event in found]
        assert len(found) == (100, 100, 100, 18, 0)[page]
        if page == 1:
            _happen(api.database, conversation, 1)  # between two pages
    assert seen == sorted(set(seen))
    assert len(seen) == 318


def _conversation(api) -> tuple[str, str]:
    """Make a session in which nothing has happened; its creation's events are deleted."""
    (kept,) = take_in(api.database, api.org, document())
    api.database.write(lambda tx: tx.run("DELETE FROM events"))
    return kept.workspace_id, kept.session_id


def _happen(database, conversation: str, count: int) -> None:
    row = row_id(database, conversation)

    def act(tx):
        for _ in range(count):
            append(tx, row, Event("visibility", payload={"visibility": "visible"}))

    database.write(act)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_fault_24_only_more_than_the_cap_is_more(api, more):
    cap = 5
    for number in range(cap + more):
        take_in(api.database, api.org, document(user(message=f"{number}"), session_id=str(number)))
    page = api.get(f"{api.v3}/sessions?first={cap}").json()
    assert (len(page["items"]), page["has_next_page"]) == (min(cap + more, cap), more > 0)
    home = api.get(f"{api.agent}/workspaces").json()["workspaces"][0]["public_id"]
    line = api.get(f"{api.agent}/workspaces/{home}/conversations?limit={cap}").json()
    assert (line["pagination"]["next_after"] is not None) == (more > 0)
    long = document(user(), results({"source_call_id": "c1", "content": "x" * (4_000 + more)}))
    (kept,) = take_in(api.database, api.org, long | {"session_id": "long"})
    events = api.get(f"{api.v3}/sessions/{kept.session_id}/events").json()["items"]
    cut = [e["data"]["result_truncated"] for e in events if "result_truncated" in e["data"]]
    assert set(cut) == {more > 0}


def test_fault_26_an_export_of_any_length_takes_bounded_memory(database, org):
    call = {"source_call_id": "c1", "content": "out " * 500}
    many = [results(call, message="word " * 400) for _ in range(8_000)]
    session_id = take_in(database, org, document(user(), *many))[0].session_id
    del many
    conversation_id = row_id(database, session_id)
    for secrets in ((), ("correct horse",)):
        with database.read() as tx:
            tracemalloc.start()
            size = sum(map(len, trajectory(tx, conversation_id, Redactor(secrets, "standard"))))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert size > 32_000_000
        assert peak < 8_000_000


def test_fault_27_an_image_is_a_part_and_the_same_bytes_afterwards(api, steno, tmp_path):
    data = base64.b64encode(PNG).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    log = claude.Log()
    log.user("go")
    log.answer("m1", claude.call("c1"))
    log.result("c1", [claude.text("B"), {"type": "image", "source": source}])
    log.answer("m2", claude.text("seen"))
    (kept,) = take_in(api.database, api.org, log)
    (result,) = results_of(exported(api.database, kept.session_id))
    assert [part["type"] for part in result["content"]] == ["text", "image"]
    path = result["content"][1]["source"]["path"]
    served = api.get(f"{api.v3}/sessions/{kept.session_id}/{path}")
    assert (served.content, served.headers["content-type"]) == (PNG, "image/png")
    steno("export", kept.session_id, "-o", tmp_path / "out" / "doc.json", status=1)
    (tmp_path / "out").mkdir()
    steno("export", kept.session_id, "-o", tmp_path / "out" / "doc.json")
    assert (tmp_path / "out" / path).read_bytes() == PNG
    again = json.loads(steno("import", tmp_path / "out" / "doc.json", "--json"))["sessions"][0]
    served = api.get(f"{api.v3}/sessions/{again['session_id']}/{path}")
    assert again["session_id"] != kept.session_id
    assert served.content == PNG


def test_fault_28_an_embedded_child_is_a_session_of_its_own(api):
    child = document(user(message="look"), agent(message="found"), trajectory_id="child")
    ref = {"source_call_id": "c1", "subagent_trajectory_ref": [{"trajectory_id": "child"}]}
    whole = document(user(), results(ref), subagent_trajectories=[child])
    parent, below = take_in(api.database, api.org, whole)
    read = api.get(f"{api.v3}/sessions/{parent.session_id}").json()
    assert read["child_session_ids"] == [below.session_id]
    said = api.get(f"{api.v3}/sessions/{below.session_id}/conversation").json()["items"]
    assert [item["content"] for item in said] == ["look", "found"]
    (found,) = exported(api.database, parent.session_id)["subagent_trajectories"]
    assert found["steps"] == child["steps"]


def test_fault_29_a_compaction_replaces_the_context_and_deletes_nothing(api):
    boundary = system(
        extra={"context_management": {"type": "compaction", "boundary": "replace"}},
        observation={"results": [{"content": "SUM"}]},
    )
    steps = (user(message="A"), boundary, user(message="B"), agent(message="C"))
    (kept,) = take_in(api.database, api.org, document(*steps))
    found = exported(api.database, kept.session_id)["steps"]
    assert found == [{"step_id": n, **step} for n, step in enumerate(steps, 1)]
    assert effective_input(found, before=4) == ["SUM", "B"]
    said = api.get(f"{api.v3}/sessions/{kept.session_id}/conversation").json()["items"]
    assert [item["content"] for item in said if item["role"] == "user"] == ["A", "B"]


def effective_input(steps: list[dict], before: int) -> list[str]:
    """What the model was given before a step, by RFC 0001: nothing from before a `replace`."""
    given: list[str] = []
    for step in steps[: before - 1]:
        managed = (step.get("extra") or {}).get("context_management") or {}
        if managed.get("boundary") == "replace":
            given = []
        given += [step["message"]] if step["message"] else []
        given += [r["content"] for r in (step.get("observation") or {}).get("results", ())]
    return given


def test_fault_30_an_export_is_atif_and_other_labels_are_refused(api):
    (kept,) = take_in(api.database, api.org, document(user(), agent()))
    found = exported_bytes(api.database, kept.session_id, "standard")
    assert json.loads(found)["schema_version"] == "ATIF-v1.7"
    assert harbor.validate(found) == []
    for label in ("atif/1", "1.4"):
        status, body = post(api, document(version=label))
        assert status == 400
        assert "/schema_version" in body["message"]
        assert "ATIF-v1.0" in body["message"]


def test_fault_31_results_without_calls_are_kept_in_order(database, org):
    step = agent(observation={"results": [{"content": "x"}, {"content": "y"}]})
    assert results_of(round_trip(database, org, document(user(), step))) == [
        {"content": "x"},
        {"content": "y"},
    ]


def test_fault_33_a_cumulative_total_is_charged_by_its_growth(database, org):
    log = codex.Log()
    for total in (1_000, 1_800):
        log.message("user", "go")
        log.message("assistant", "done")
        log.count(codex.tokens(total, 0))
    found = round_trip(database, org, log)
    spent = [step["metrics"]["prompt_tokens"] for step in steps_of(found, "agent")]
    assert (spent, totals(found)["total_prompt_tokens"]) == ([1_000, 800], 1_800)


def test_fault_36_keys_in_stored_state_are_in_no_file_of_a_bundle(api, steno, tmp_path):
    key = "sk-test-" + "4f9aB2" * 4
    made = api.post(
        f"{api.v3}/sessions",
        json={
            "recorded": True,
            "prompt": "go",
            "agent": {"name": "a", "version": "1", "extra": {"llm": {"api_key": key}}},
            "session_policy": {"api_key": key},
        },
    ).json()["session_id"]
    step = {"step_id": 2, **agent(message="done"), "extra": {"config": {"api_key": key}}}
    steps = f"{api.v3}/sessions/{made}/steps"
    assert api.post(steps, json={"steps": [step]}).status_code == 200
    steno("export", made, "-o", tmp_path / "doc.json")
    bundle = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix == ".json"]
    served = api.get(f"{api.v3}/sessions/{made}/trajectory").content
    for data in (served, *(path.read_bytes() for path in bundle)):
        assert json.loads(data)["agent"]["name"] == "a"
        assert key.encode() not in data
    # And the session goes on, with all that it has.
    more = {"step_id": 3, **user(message="more")}
    assert api.post(steps, json={"steps": [more]}).json()["appended"] == 1
    assert key in json.dumps(exported(api.database, made, "none"))


def test_fault_37_every_known_shape_is_masked(database, org):
    keys = (
        "AIza" + "SyD4f9aB2cQ7xL0mN5pR8tV1wY3zE6gH9jK"[:35],
        "AKIA" + "IOSFODNN7EXAMPLE",
        "sk-proj-" + "4f9aB2cQ7xL0mN5pR8tV1wY3",
    )
    header = "x-api-key: 4f9aB2cQ7xL0"
    text = f"{' '.join(keys)}\n{header}\nASIAPACIFIC"
    whole = document(user(), results({"source_call_id": "c1", "content": text}))
    found = round_trip(database, org, whole, "standard")
    (result,) = results_of(found)
    for key in (*keys, "4f9aB2cQ7xL0"):
        assert key not in result["content"]
    assert "ASIAPACIFIC" in result["content"]
    assert sum(found["extra"]["fidelity"]["redactions"].values()) == 4


def test_fault_38_a_value_is_masked_whatever_its_key_is_called(database, org):
    call = {**CALL, "arguments": {"note": "key=sk-test-abc123"}}
    found = round_trip(database, org, document(user(), agent(tool_calls=[call])), "standard")
    assert "sk-test-abc123" not in json.dumps(found)


def test_fault_40_the_epoch_is_a_time(api):
    log = claude.Log()
    log.user("go", timestamp="1970-01-01T00:00:00Z")
    log.answer("m1", claude.text("done"))
    (kept,) = take_in(api.database, api.org, log)
    found = exported(api.database, kept.session_id)
    assert found["steps"][0]["timestamp"] == "1970-01-01T00:00:00Z"
    read = api.get(f"{api.v3}/sessions/{kept.session_id}").json()
    assert read["started_at"] == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize("claim", [100, 140])
def test_fault_41_a_runs_total_holds_its_children(database, org, claim):
    child = document(user(), agent(metrics={"prompt_tokens": 40}), trajectory_id="child")
    ref = {"source_call_id": "c1", "subagent_trajectory_ref": [{"trajectory_id": "child"}]}
    parent = results(ref, metrics={"prompt_tokens": 100})
    whole = document(
        user(),
        parent,
        subagent_trajectories=[child],
        final_metrics={"total_prompt_tokens": claim},
    )
    found = round_trip(database, org, whole)
    assert totals(found)["total_prompt_tokens"] == 140
    assert own_totals(found)["total_prompt_tokens"] == 100


# B. Faults seen in unpacked wheels


def test_fault_43_no_cached_tokens_are_zero_cached_tokens(database, org):
    usage = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5}
    log = codex.Log()
    log.message("user", "go")
    log.message("assistant", "done")
    log.count(total=None, last=usage)
    found = round_trip(database, org, log)
    (step,) = steps_of(found, "agent")
    assert step["metrics"]["cached_tokens"] == 0
    assert totals(found)["total_cached_tokens"] == 0


def test_fault_44_steps_are_numbered_without_holes(database, org):
    log = codex.Log()
    log.message("user", "go")
    log.event("background_event", message="nothing to be shown")
    log.item("reasoning", summary=[])
    log.event("who_knows", text="what")
    log.message("assistant", "done")
    log.message("user", "more")
    log.line("who_knows", text="what")
    log.message("assistant", "done again")
    found = round_trip(database, org, log)
    assert [step["step_id"] for step in found["steps"]] == list(range(1, len(found["steps"]) + 1))
    assert harbor.validate(found) == []


@pytest.mark.parametrize("usage", [{"input_tokens": None}, None, {}])
def test_fault_45_what_a_log_does_not_tell_is_unknown(database, org, usage):
    log = claude.Log()
    log.user("go")
    log.answer("m1", claude.text("done"), usage=usage)
    found = round_trip(database, org, log)
    (step,) = steps_of(found, "agent")
    assert "metrics" not in step
    assert "total_prompt_tokens" not in totals(found)


def test_fault_46_without_times_lines_stand_as_in_the_file(database, org):
    log = claude.Log()
    log.user("first", timestamp=None)
    log.answer("m1", claude.text("second"))
    log.user("third")
    log.answer("m2", claude.text("fourth"), timestamp=None)
    for line in log.lines[2:3]:
        del line["timestamp"]
    found = round_trip(database, org, log)
    assert [step["message"] for step in found["steps"]] == ["first", "second", "third", "fourth"]


def test_fault_47_no_result_lines_cost_is_taken_for_the_sessions(api):
    """What the program printed is no log and says so; in a log such lines are kept aside."""
    stream = b"".join(
        json.dumps({"type": "result", "session_id": "s", "total_cost_usd": cost}).encode() + b"\n"
        for cost in (0.1, 0.3)
    )
    start = b'{"type":"system","subtype":"init","session_id":"s"}\n'
    assert post(api, start + stream)[0] == 400
    log = claude.Log()
    log.user("go")
    log.answer("m1", claude.text("a"))
    log.line("result", total_cost_usd=0.1)
    log.answer("m2", claude.text("b"))
    log.line("result", total_cost_usd=0.3)
    (kept,) = take_in(api.database, api.org, log)
    assert kept.kept_aside["result"] == 2
    assert "total_cost_usd" not in totals(exported(api.database, kept.session_id))
    assert api.get(f"{api.v3}/sessions/{kept.session_id}").json()["cost_usd"] is None


def test_fault_48_a_sidechain_is_an_embedded_child(database, org):
    log, side = claude.Log(), claude.Log(isSidechain=True, agentId="a1")
    log.user("go")
    log.answer("m1", claude.call("c1", "Agent", prompt="look"))
    side.user("look")
    side.answer("s1", claude.text("found"))
    log.result("c1", "found", toolUseResult={"agentId": "a1"})
    log.answer("m2", claude.text("done"))
    log.lines[2:2] = side.lines
    found = round_trip(database, org, log)
    assert [step["message"] for step in found["steps"]] == ["go", "", "done"]
    (child,) = found["subagent_trajectories"]
    assert [step["message"] for step in child["steps"]] == ["look", "found"]
    (result,) = results_of(found)
    (ref,) = result["subagent_trajectory_ref"]
    assert ref["trajectory_id"] == child["trajectory_id"]


def test_fault_50_nothing_is_lost_on_the_way_out(database, org):
    """Reasoning, system steps, results without calls, cached counts, audio; the bytes too."""
    steps = (
        system(message="rules"),
        user(),
        results({"source_call_id": "c1", "content": "1"}, {"content": "2"},
                reasoning_content="why", metrics={"prompt_tokens": 9, "cached_tokens": 8}),
        agent(message=[{"type": "text", "text": "hear"}, audio()]),
    )  # fmt: skip
    log = json.dumps(document(*steps)).encode()
    (kept,) = take_in(database, org, log)
    found = exported(database, kept.session_id)
    assert found["steps"] == [{"step_id": n, **step} for n, step in enumerate(steps, 1)]
    assert found["schema_version"] == "ATIF-v1.8"
    with database.read() as tx:
        ((digest, size),) = tx.rows("SELECT digest, size FROM originals")
    assert (bytes(digest), size) == (hashlib.sha256(log).digest(), len(log))


def test_fault_51_a_free_model_costs_zero(api):
    (kept,) = take_in(api.database, api.org, document(user(), agent(metrics={"cost_usd": 0.0})))
    assert totals(exported(api.database, kept.session_id))["total_cost_usd"] == 0.0
    assert api.get(f"{api.v3}/sessions/{kept.session_id}").json()["cost_usd"] == 0.0


def test_fault_52_one_text_is_a_string_and_nothing_is_null(database, org):
    one, two = [{"type": "text", "text": "a"}], [{"type": "text", "text": t} for t in "ab"]
    whole = document(
        user(message=one),
        results({"source_call_id": "c1", "content": one, "subagent_trajectory_ref": None}),
        results({"source_call_id": "c1", "content": two}, message=two),
        agent(message=one, llm_call_count=0),
    )
    found = round_trip(database, org, whole)
    assert [step["message"] for step in found["steps"]] == ["a", "", two, "a"]
    assert [result["content"] for result in results_of(found)] == ["a", two]
    assert found["steps"][3]["llm_call_count"] == 0
    assert nulls(found) == []


def nulls(value, at="") -> list[str]:
    """Return where a document's own fields are null; free-form data may be what it likes."""
    if isinstance(value, dict):
        return [
            place
            for key, item in value.items()
            if key not in ("extra", "arguments", "tool_definitions")
            for place in nulls(item, f"{at}/{key}")
        ]
    if isinstance(value, list):
        return [place for n, item in enumerate(value) for place in nulls(item, f"{at}/{n}")]
    return [at] if value is None else []


@pytest.mark.parametrize("path", ["../out.png", "/etc/passwd", "a/../../b.png", "file:///a.png"])
def test_fault_53_media_paths_lead_nowhere_else_in_children_too(api, steno, tmp_path, path):
    child = document(user(message=[image(path)]), trajectory_id="child")
    status, body = post(api, document(subagent_trajectories=[child]))
    assert status == 400
    assert "/subagent_trajectories/0/steps/0/message/0/source/path" in body["message"]
    inside = document(user(message=[image("→.png")]), trajectory_id="child")
    whole = document(user(message="→"), subagent_trajectories=[inside])
    (tmp_path / "doc.json").write_bytes(json.dumps(whole, ensure_ascii=False).encode())
    (tmp_path / "→.png").write_bytes(PNG)
    kept = json.loads(steno("import", tmp_path / "doc.json", "--json"))["sessions"]
    assert len(kept) == 2
    with api.database.read() as tx:
        assert [(p, bytes(d)) for p, d in tx.rows("SELECT path, data FROM media")] == [
            ("→.png", PNG)
        ]


@pytest.mark.parametrize(
    ("spoiled", "pointer"),
    [
        ({**document(), "steps": []}, "/steps"),
        (document(version="1.7"), "/schema_version"),
        (document(final_metrics={"total_steps": -1}), "/final_metrics/total_steps"),
        (
            document(agent(observation={"results": [{"source_call_id": "c1", "content": "x"}]})),
            "/steps/0/observation/results/0/source_call_id",
        ),
    ],
)
def test_fault_55_what_a_laxer_reader_takes_is_refused(api, spoiled, pointer):
    assert atif_package.validate(spoiled) == []
    status, body = post(api, spoiled)
    assert status == 400
    assert f"{pointer}:" in body["message"]
    assert sessions(api.database) == 0


def test_fault_56_exports_have_no_nulls_and_use_no_call_id_twice(database, org):
    drafts = [d for c in find([SAMPLES]) if c.format is not None for d in read_source(c)]
    kept = database.write(lambda tx: [r for d in drafts for r in record(tx, org.owner, d)])
    roots = [found.session_id for found in kept if found.parent_session_id is None]
    assert len(roots) >= 3
    for session_id in roots:
        found = exported(database, session_id, "standard")
        assert nulls(found) == []
        for one in (found, *found.get("subagent_trajectories", ())):
            calls = [c["tool_call_id"] for s in one["steps"] for c in s.get("tool_calls", ())]
            assert [name for name, count in Counter(calls).items() if count > 1] == []
