"""`recordSessionSteps`: in order, once, by who may, and what readings make of it."""

import json

import pytest

METRICS = {"prompt_tokens": 10, "completion_tokens": 2, "extra": {"cache_write_tokens": 4}}


@pytest.fixture
def start(api):
    """Make a recorded session with the prompt `go` as step 1; returns (its path, a sender)."""

    def make(**options):
        body = {"prompt": "go", "recorded": True}
        made = api.post(f"{api.v3}/sessions", json=body, **options)
        path = f"{api.v3}/sessions/{made.json()['session_id']}"

        def send(*steps, key=None, **more):
            return api.post(f"{path}/steps", json={"steps": list(steps), **more}, key=key)

        return path, send

    return make


def user(number, text="q"):
    return {"step_id": number, "source": "user", "message": text}


def agent(number, text="a", **fields):
    return {"step_id": number, "source": "agent", "message": text, **fields}


def works(number, call_id, **result):
    call = {"tool_call_id": call_id, "function_name": "f", "arguments": {}}
    results = [{"source_call_id": call_id, "content": "out", **result}]
    return agent(number, tool_calls=[call], observation={"results": results})


def state(answer):
    body = answer.json()
    return answer.status_code, body.get("error") or (body["appended"], body["unchanged"])


def test_out_of_order_repeated_and_conflicting_steps(start):
    _, send = start()
    assert state(send(agent(3))) == (409, "step_out_of_order")
    assert state(send(agent(2), user(3))) == (200, (2, 0))
    assert state(send(agent(2), user(3), agent(4))) == (200, (1, 2))
    assert state(send(agent(2, "else"))) == (409, "step_conflict")
    assert state(send(agent(2, "else"), user(3), agent(4), agent(5))) == (409, "step_conflict")
    assert state(send(agent(6), agent(5))) == (400, "invalid_steps")
    assert state(send(agent(5), agent(5))) == (400, "invalid_steps")
    assert state(send(agent(10**30))) == (409, "step_out_of_order")
    assert state(send()) == (200, (0, 0))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b'"x"', b"{", b'{"steps": null}', b'{"steps": "x"}', b'{"steps": [1]}',
        b'{"steps": [{}]}', b'{"other": 1}', b'{"\\ud800": 1}', b'{"finish": []}',
        b'{"finish": {"status": "running"}}', b'{"finish": {"x": 1}}', b"[" * 100_000,
        b'{"step_id": 2, "source": "agent", "message": NaN}',
        b'{"step_id": 2.0, "source": "agent", "message": "a"}',
        b'{"step_id": true, "source": "agent", "message": "a"}',
        b'{"step_id": 2, "source": "agent", "message": "a", "bogus": 1}',
        b'{"step_id": 2, "source": "agent", "message": "a", "metrics": {"prompt_tokens": -1}}',
        b'{"step_id": 2, "source": "agent", "message": "a", "timestamp": "2026-03-02T10:00:60Z"}',
        b'{"step_id": 2, "source": "user", "message": "a", "tool_calls": []}',
        b'{"step_id": 2, "source": "agent", "message": "a", "extra": ' + b'{"a":' * 150 + b"1"
        + b"}" * 151,
    ],
)  # fmt: skip
def test_what_is_no_step_is_refused_and_changes_nothing(api, start, body):
    path, _ = start()
    before = api.get(f"{path}/trajectory").content
    answer = api.post(f"{path}/steps", content=body)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()) == {"error", "message"}
    assert api.get(f"{path}/trajectory").content == before


def test_text_that_no_database_takes_as_it_is(api, start):
    path, _ = start()
    for _ in range(2):
        body = b'{"step_id": 2, "source": "agent", "message": "\\ud800 \\u0000"}'
        assert api.post(f"{path}/steps", content=body).status_code == 200
    assert api.get(f"{path}/trajectory").json()["steps"][1]["message"] == "\ufffd \0"


def test_senders_at_once_leave_each_step_once(api, start):
    path, _ = start()
    steps = [agent(n, f"answer {n}") for n in range(2, 12)]
    requests = [("POST", f"{path}/steps", {"json": {"steps": steps[:n]}}) for n in range(1, 11)]
    answers = api.together(*requests, *requests)
    assert {answer.status_code for answer in answers} == {200}
    assert sum(answer.json()["appended"] for answer in answers) == 10
    found = api.get(f"{path}/trajectory").json()["steps"]
    assert [s["message"] for s in found] == ["go", *(s["message"] for s in steps)]


def test_the_end_may_be_sent_again_and_nothing_after_it(api, start):
    path, send = start()
    finish = {"status": "exit", "outcome": "failure", "result_summary": "It broke"}
    assert send(agent(2), finish=finish).json()["status"] == "exit"
    for _ in range(2):
        again = send(agent(2), finish=finish)
        assert state(again) == (200, (0, 1))
        assert again.json()["status"] == "exit"
    assert state(send(finish={**finish, "status": "error"})) == (409, "session_ended")
    assert state(send(finish={**finish, "outcome": "success"})) == (409, "session_ended")
    assert state(send(finish={**finish, "result_summary": "x"})) == (409, "session_ended")
    assert state(send(agent(3))) == (409, "session_ended")
    assert state(send(agent(2))) == (200, (0, 1))
    found = api.get(path).json()
    assert (found["outcome"], found["result_summary"]) == ("failure", "It broke")


@pytest.mark.parametrize(
    ("key", "status"),
    [("api:member", 403), ("api:agent", 403), ("api:stranger", 404), ("api:admin", 200), ("", 401)],
)
def test_who_may_add_to_a_session(start, key, status):
    _, send = start()
    assert send(agent(2), key=key).status_code == status


def test_only_a_session_that_is_recorded_takes_steps(api, start):
    imported = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [user(1)],
    }
    made = api.post(f"{api.v3}/sessions/import", content=json.dumps(imported)).json()
    path = f"{api.v3}/sessions/{made['sessions'][0]['session_id']}"
    answer = api.post(f"{path}/steps", json={"steps": [agent(2)]})
    assert state(answer) == (409, "session_not_recorded")
    nowhere = f"{api.v3}/sessions/01a22f98-1db0-751e-8bf9-1c8ced9dcb09/steps"
    assert api.post(nowhere, json={"steps": [agent(2)]}).status_code == 404


@pytest.mark.parametrize("together", [True, False])
def test_a_message_while_the_agent_works_is_a_steer(api, start, together):
    path, send = start()
    steps = [works(2, "c1"), user(3, "faster"), agent(4, "done"), user(5, "thanks")]
    for part in [steps] if together else [[step] for step in steps]:
        assert send(*part).status_code == 200
    events = api.get(f"{path}/events").json()
    assert events  # the session's readings go on
    with api.database.read() as tx:
        parts = tx.rows("SELECT part FROM steps ORDER BY position")
        turns = tx.value("SELECT count(*) FROM turns")
    assert [row[0] for row in parts] == ["prompt", "agent", "steer", "agent", "prompt"]
    assert turns == 2


def test_recorded_steps_tell_the_same_facts_as_imported_ones(api, start):
    path, send = start()
    failing = works(2, "c1", extra={"is_error": True})
    send({**failing, "reasoning_content": "hm", "metrics": METRICS})
    document = api.get(f"{path}/trajectory").json()
    document["session_id"] = document["trajectory_id"] = "elsewhere"
    assert api.post(f"{api.v3}/sessions/import", json=document).status_code == 201
    facts = (
        "SELECT status FROM tasks WHERE kind = 'tool_task' ORDER BY id",
        "SELECT reasoning_enabled FROM invocations ORDER BY id",
        "SELECT prompt_tokens, cache_write_tokens FROM usage_receipts ORDER BY id",
    )
    with api.database.read() as tx:
        told = [tx.rows(sql) for sql in facts]
    assert [rows[0] == rows[1] for rows in told] == [True] * 3
    assert told[0][0] == ("failed",)


def test_a_step_costs_the_same_however_many_came_before(api, start):
    _, send = start()
    send(*(works(n, f"c{n}") for n in range(2, 12)))
    asked: list[list[str]] = []
    for number in (12, 13, 500):
        if number == 500:
            send(*(works(n, f"c{n}") for n in range(14, 500)))
        asked.append([])
        api.database.observer = asked[-1].append
        assert send(works(number, f"c{number}")).status_code == 200
        api.database.observer = None
    assert len(asked[0]) == len(asked[1]) == len(asked[2])
