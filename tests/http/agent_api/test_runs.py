"""Run reads: overview, transcript, task detail, sealed requests (agent-api.md 4.3)."""

import pytest

import story
from stenograph.runs import run, task
from stenograph.runs.task import Call


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


@pytest.fixture
def said(database, where):
    return story.branched(database, where)


def test_the_overview_lists_tasks_and_leaves_hidden_ones_out(api, where, said):
    found = api.get(where.run(said)).json()["run"]
    assert [(t["task_key"], t["kind"], t["status"], t["mainline"]) for t in found["tasks"]] == [
        ("r1", "model_task", "completed", True),
        ("r2t0", "tool_task", "completed", True),
        ("r2t1", "tool_task", "completed", True),
        ("r2t0-model-1", "model_task", "completed", False),
        ("r2", "model_task", "waiting", True),
        ("r3", "model_task", "failed", True),
    ]
    assert found["task_progress"] == {
        "total": 6,
        "settled": 5,
        "statuses": {"completed": 4, "failed": 1, "waiting": 1},
    }
    assert found["turn"] == {
        "public_id": said.turn.public_id,
        "position": 0,
        "kind": "direct_reply",
        "status": "running",
        "variant_public_id": said.variant.public_id,
    }
    assert found["status"] == "running"
    assert "completed_at" not in found
    assert "deliverable_task_key" not in found


def test_a_run_that_needs_attention_says_why(api, database, where, said):
    database.write(lambda tx: run.move(tx, said.run, "needs_attention", reason="model refused"))
    found = api.get(where.run(said)).json()["run"]
    assert found["attention"] == {"reason": "model refused"}
    database.write(lambda tx: run.move(tx, said.run, "paused"))
    found = api.get(where.run(said)).json()["run"]
    assert found["status"] == "paused"
    assert "paused_at" in found
    assert "attention" not in found
    events = api.get(f"{where.path}/events", params={"limit": 200}).json()["events"]
    notes = [e["payload"] for e in events if "run_status" in e["payload"]]
    assert [note["run_status"] for note in notes] == ["needs_attention", "paused"]
    assert all("status" not in note for note in notes)


def test_a_delivered_run_names_its_deliverable(api, database, where):
    said = story.rounds(database, where, ["a", "b"])
    found = api.get(where.run(said)).json()["run"]
    assert (found["status"], found["deliverable_task_key"]) == ("completed", "r2")
    assert "completed_at" in found


def test_the_transcript_shows_the_mainline_with_calls_and_branches(api, where, said):
    page = api.get(where.run(said) + "/transcript").json()
    assert [r["task_key"] for r in page["rounds"]] == ["r1", "r2", "r3"]
    first = page["rounds"][0]
    assert first["calls"]["count"] == 2
    assert [(c["task_key"], c["name"], c["tool_call_id"]) for c in first["calls"]["items"]] == [
        ("r2t0", "delegate_task", "call_a"),
        ("r2t1", "ls", "call_b"),
    ]
    assert first["branches"] == ["r2t0"]
    assert (first["text_preview"], first["text_bytes"]) == ("I look.", 7)
    assert first["usage"] == {"input_tokens": 50, "output_tokens": 5, "cost_amount": "0.01"}
    assert page["rounds"][1] == {
        "task_key": "r2",
        "mainline": True,
        "status": "waiting",
        "visibility": "visible",
        "calls": {"count": 0, "items": []},
        "branches": [],
    }
    for word in ("First I list the files.", "superseded", "c2VjcmV0"):
        assert word not in str(page)


def test_a_prefix_shows_the_branch_beneath_a_call(api, where, said):
    page = api.get(where.run(said) + "/transcript", params={"prefix": "r2t0"}).json()
    (round,) = page["rounds"]
    assert (round["task_key"], round["mainline"]) == ("r2t0-model-1", False)
    assert round["text_preview"] == "From the branch."
    empty = api.get(where.run(said) + "/transcript", params={"prefix": "r2t1"})
    assert empty.json()["rounds"] == []
    assert api.get(where.run(said) + "/transcript", params={"prefix": "r9"}).status_code == 404


def test_the_transcript_pages_back(api, database, where):
    said = story.rounds(database, where, ["x"] * 5)
    found, before = [], ""
    while before is not None:
        query = {"limit": 2, "before": before}
        page = api.get(where.run(said) + "/transcript", params=query).json()
        found = [r["task_key"] for r in page["rounds"]] + found
        assert page["pagination"]["has_older"] == (page["pagination"]["next_before"] is not None)
        before = page["pagination"]["next_before"]
    assert found == ["r1", "r2", "r3", "r4", "r5"]
    for query in ({"limit": "0"}, {"limit": "101"}, {"before": "Y3ZlaTo3"}):
        answer = api.get(where.run(said) + "/transcript", params=query)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == f"Invalid parameter: {next(iter(query))}"


def test_24_calls_are_listed_and_all_are_counted(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        task.add_calls(tx, said.run, first, [Call("f", str(n)) for n in range(30)])
        return said

    said = database.write(make)
    (round,) = api.get(where.run(said) + "/transcript").json()["rounds"]
    assert round["calls"]["count"] == 30
    assert [c["task_key"] for c in round["calls"]["items"]] == [f"r2t{n}" for n in range(24)]


def test_a_call_from_a_script_names_the_script(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        task.add_calls(tx, said.run, first, [Call("code", '"x"'), Call("ls", "{}", script="r2t0")])
        return said

    said = database.write(make)
    (round,) = api.get(where.run(said) + "/transcript").json()["rounds"]
    script, made = round["calls"]["items"]
    assert round["branches"] == ["r2t0"]
    assert "script_task_key" not in script
    assert made["script_task_key"] == "r2t0"
    detail = api.get(where.run(said) + "/tasks/r2t1").json()["task"]
    assert (detail["parent_task_key"], detail["round_task_key"]) == ("r2t0", "r1")


def test_a_call_in_full(api, where, said):
    found = api.get(where.run(said) + "/tasks/r2t1").json()["task"]
    assert {k: v for k, v in found.items() if not k.endswith("_at")} == {
        "task_key": "r2t1",
        "kind": "tool_task",
        "status": "completed",
        "visibility": "collapsed",
        "mainline": True,
        "name": "ls",
        "tool_call_id": "call_b",
        "parent_task_key": "r1",
        "round_task_key": "r1",
        "call_index": 1,
        "input": {"path": "/tmp"},
        "output": "a\nb",
    }


def test_a_round_in_full_has_no_reasoning(api, where, said):
    answer = api.get(where.run(said) + "/tasks/r1")
    found = answer.json()["task"]
    assert found["output"] == "I look."
    assert found["model"]["model_ref"] == "thinker"
    assert found["usage"]["input_tokens"] == 50
    assert "First I list" not in answer.text


def test_arguments_that_cannot_be_told_as_json_stay_text(api, database, where):
    cut, deep = '{"cut": ', '{"a":' * 950 + "1" + "}" * 950

    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        task.add_calls(tx, said.run, first, [Call("f", cut), Call("f", deep)])
        return said

    said = database.write(make)
    for key, written in (("r2t0", cut), ("r2t1", deep)):
        assert api.get(f"{where.run(said)}/tasks/{key}").json()["task"]["input"] == written


def test_requests_of_single_rounds(api, where, said):
    assert api.get(where.run(said) + "/tasks/r1/request").json() == {
        "request": {"entries": [{"role": "user", "content": "for r1"}], "request_options": {}}
    }
    for key in ("r2", "r2t0"):
        answer = api.get(where.run(said) + f"/tasks/{key}/request")
        assert (answer.status_code, answer.json()["error"]["code"]) == (
            404,
            "request_not_sealed",
        )
    answer = api.get(where.run(said) + "/tasks/r99/request")
    assert answer.json() == {"error": {"code": "not_found", "message": "Not found"}}


def test_a_pruned_run_is_an_overview_without_tasks_and_410_beneath(api, database, where, said):
    story.run_sql(database, "DELETE FROM tasks")
    story.run_sql(database, "UPDATE runs SET details_pruned_at = 60000000")
    found = api.get(where.run(said)).json()["run"]
    assert (found["tasks"], found["details_pruned_at"]) == ([], "1970-01-01T00:01:00Z")
    assert found["runner_effects"]["status"] == "unavailable"
    for path in (
        "/transcript", "/transcript?limit=0", "/transcript?prefix=nope", "/tasks/r1",
        "/tasks/nope", "/tasks/nope/request",
    ):  # fmt: skip
        answer = api.get(where.run(said) + path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (
            410,
            "execution_details_pruned",
        )
