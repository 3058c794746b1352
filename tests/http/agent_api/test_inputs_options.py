"""What an input may ask for, and what is refused (agent-api.md 3.2)."""

import pytest

import story
from stenograph.runs import run as runs
from stenograph.runs import task as tasks
from stenograph.runs.task import Call


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


@pytest.fixture
def busy(database, where):
    """A turn that a run answers."""
    return database.write(lambda tx: story.open_run(tx, where))


def send(api, where, key="k", **body):
    headers = {"Idempotency-Key": key}
    body = {"kind": "direct_reply", "text": "Hello"} | body
    return api.post(f"{where.path}/inputs", json={"input": body}, headers=headers)


def refusal(answer):
    return answer.status_code, answer.json()["error"]["code"]


def turns(api, where):
    return api.get(f"{where.path}/turns").json()["turns"]


def test_a_row_says_all_that_was_asked_for(api, where, busy, org):
    asked = {
        "text": "Greet {{name}}.",
        "model": {"model": "dev/thinker", "reasoning_enabled": True, "reasoning_effort": "high"},
        "configuration": {"max_tokens": 50, "temperature": 0.5},
        "tool_names": ["read"],
        "approval_mode": "ask",
        "inline": [{"title": "Names", "text": "Ada"}],
        "history": {"max_entries": 3, "token_budget_share": 0.25},
        "reasoning_replay": {"mode": "last_turn"},
        "variables": {"name": "Ada"},
        "expected_tail_turn_public_id": busy.turn.public_id,
        "answering_user_public_id": "@agent",
        "deliver_at": "2100-01-01T00:00:00Z",
        "visible_in_context": False,
    }
    answer = send(api, where, **asked)
    assert refusal(answer) == (422, "validation_failed")  # more than a year ahead
    answer = send(api, where, **asked | {"deliver_at": None, "deliver_in": 3600})
    assert answer.status_code == 202
    row = answer.json()["input"]
    (listed,) = api.get(f"{where.path}/inputs").json()["inputs"]
    assert listed == row
    assert row.pop("created_at") < row.pop("deliver_at")
    assert row.pop("speaker")["user_public_id"] == org.owner.principal_public_id
    row.pop("public_id")
    assert row == {
        "queue_position": 1,
        "state": "pending",
        "kind": "direct_reply",
        "role": "user",
        "delivery_mode": "queue",
        "context_mode": "assembled",
        "context_options": {
            "visible_in_context": False,
            "model": asked["model"],
            "configuration": asked["configuration"],
            "inline": asked["inline"],
            "history": asked["history"],
            "reasoning_replay": asked["reasoning_replay"],
            "variables": asked["variables"],
            "expected_tail_turn_public_id": busy.turn.public_id,
        },
        "tool_names": ["read"],
        "approval_mode": "ask",
        "text": "Greet {{name}}.",
        "lock_version": 0,
        "origin": "person",
        "answering_user_public_id": org.agent.principal_public_id,
    }


def test_raw_entries_are_shown_as_they_were_sent(api, where, busy):
    entries = [
        {"role": "user", "text": "What is there?"},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "text": "I look."},
                {"type": "tool_call", "id": "c1", "name": "ls", "arguments": "{}"},
            ],
        },
        {"role": "tool", "parts": [
            {"type": "tool_result", "id": "c1", "name": "ls", "output": "a", "is_error": True}
        ]},
    ]  # fmt: skip
    answer = send(
        api, where, text=None, context_mode="raw", entries=entries, instructions="Be brief."
    )
    assert answer.status_code == 202, answer.text
    row = answer.json()["input"]
    assert row["context_options"]["entries"] == entries
    assert (row["context_mode"], row["instructions"]) == ("raw", "Be brief.")
    assert "text" not in row


RAW = {"context_mode": "raw"}
USER = {"role": "user", "text": "x"}


TOGETHER = [
    {"text": "x", "entries": [USER]} | RAW,
    {"text": None, "entries": []} | RAW,
    {"text": None, "entries": [{"role": "user"}]} | RAW,
    {"text": None, "entries": [{"role": "user", "text": " "}]} | RAW,
    {"text": None, "entries": [{"role": "assistant", "text": "x"}]} | RAW,
    {"text": None, "entries": [USER]},
    {
        "text": None,
        "entries": [
            {
                "role": "tool",
                "parts": [{"type": "tool_result", "id": "c", "name": "n", "output": "o"}],
            }
        ],
    }
    | RAW,
    {
        "text": None,
        "entries": [
            {
                "role": "user",
                "parts": [{"type": "tool_call", "id": "c", "name": "n", "arguments": ""}],
            },
            USER,
        ],
    }
    | RAW,
    {"instructions": "only raw"},
    {"inline": [{"text": "x"}]} | RAW,
    {"history": {"max_entries": 1}} | RAW,
    {"reasoning_replay": {"mode": "none"}} | RAW,
    {"expected_steering_run_public_id": "x"},
    {"deliver_at": "2020-01-01T00:00:00Z", "deliver_in": 1},
    {"deliver_at": "tomorrow"},
    {"text": "{{a}}", "variables": {"a": 1, "b": 2}},
    {"text": "{{a b}}", "variables": {"a b": 1}},
    {"text": "{{a}} {{a}}", "variables": {"a": None}},
    {"text": "{{a}}" * 200_000, "variables": {"a": "x" * 1_000_000}},
    {"kind": "message", "answering_user_public_id": "@agent"},
    {"kind": "message", "context_mode": "raw"},
    {"model": {"model": "nobody/knows"}},
    {"model": {"model": "dev/unheard-of"}},
    {"model": {"model": "thinker"}},
    {"attachments": [{"filename": "a"}]},
    {"attachments": [{"public_id": "unknown"}]},
]


def test_what_does_not_go_together_is_refused(api, where):
    for body in TOGETHER:
        assert refusal(send(api, where, **body)) == (422, "validation_failed"), body
    assert api.get(f"{where.path}/events").json()["events"] == []


UNREADABLE = [
    {"history": {"max_entries": 201}},
    {"history": {"max_entries": -1}},
    {"history": {"token_budget_share": 1.5}},
    {"reasoning_replay": {"mode": "some"}},
    {"configuration": {"top_k": 5}},
    {"configuration": {"temperature": 3}},
    {"variables": {"a": {"no": "object"}}},
    {"deliver_in": -1},
    {"deliver_in": 1.5},
    {"delivery_mode": "now"},
    {"approval_mode": "never"},
    {"tool_names": [""]},
    {"entries": [{"role": "user", "parts": [{"type": "image"}]}]},
    {"attachments": [{"filename": "a", "content_type": "text/plain", "data": "%%"}]},
    {"inline": [{"text": ""}]},
]


def test_what_cannot_be_read_is_400(api, where):
    for body in UNREADABLE:
        assert refusal(send(api, where, **body)) == (400, "parameter_invalid"), body


def test_efforts_steps_and_answerers_have_their_own_codes(api, where):
    wish = {"model": "dev/thinker", "reasoning_effort": "none"}
    assert refusal(send(api, where, model=wish)) == (422, "unsupported_reasoning_effort")
    answer = send(api, where, steps=[{"key": "a"}, {"key": "b"}])
    assert refusal(answer) == (422, "invalid_steps")
    assert [it["index"] for it in answer.json()["error"]["steps"]] == [0, 1]
    for name in ("@nobody", "unknown"):
        answer = send(api, where, answering_user_public_id=name)
        assert refusal(answer) == (422, "answerer_not_eligible")


def test_a_key_is_asked_for_before_the_body_and_the_model(api, where):
    body = {"input": {"model": {"model": "nobody/knows"}, "text": "x"}}
    assert refusal(api.post(f"{where.path}/inputs", json=body)) == (
        400, "idempotency_key_required",
    )  # fmt: skip
    path = f"{where.path}/inputs"
    hidden = api.post(path, key="member:stranger", json=body)
    unknown = api.post(path.replace("conversations/", "conversations/x"), json=body)
    assert hidden.status_code == unknown.status_code == 404
    assert hidden.content == unknown.content


def test_who_answers_decides_what_answers(api, database, where, org):
    send(api, where, answering_user_public_id="@owner", tool_names=["read"])
    (turn,) = turns(api, where)
    assert turn["answering_user_public_id"] == org.owner.principal_public_id
    assert turn["active_variant"]["source"] == "inference"
    other = story.another(database, where)
    send(api, other, answering_user_public_id="@agent", tool_names=[])
    (turn,) = turns(api, other)
    assert turn["answering_user_public_id"] == org.agent.principal_public_id
    assert turn["active_variant"]["source"] == "run"


def test_variables_are_filled_in_when_the_turn_is_made(api, where):
    text = "{{greeting}} {{ who }}, {{other}}, {{n}} {{flag}}{{nothing}}"
    variables = {"greeting": "Hi", "who": "Ada {{n}}", "n": 3, "flag": True, "nothing": None}
    answer = send(api, where, kind="message", text=text, variables=variables)
    assert answer.json()["input"]["text"] == text
    assert turns(api, where)[0]["active_variant"]["content"] == "Hi Ada {{n}}, {{other}}, 3 true"


def test_approvals_are_only_tightened(api, database, where):
    policy = '{"session_policy": {"approval_mode": "rules"}}'
    made = api.post(
        where.path.rpartition("/")[0],
        json={"conversation": {}},
        headers={"Idempotency-Key": "c"},
    )
    found = made.json()["conversation"]["public_id"]
    story.run_sql(database, "UPDATE sessions SET options = :policy", policy=policy)
    path = f"{where.path.rpartition('/')[0]}/{found}/inputs"

    def ask(mode):
        body = {"input": {"text": "x", "approval_mode": mode}}
        return api.post(path, json=body, headers={"Idempotency-Key": mode})

    assert refusal(ask("bypass")) == (422, "validation_failed")
    assert ask("rules").status_code == ask("ask").status_code == 202


# --- steering ------------------------------------------------------------------------------------


def test_a_steer_names_the_run_it_is_meant_for(api, where, busy):
    run_id = busy.run.public_id
    wrong = {"delivery_mode": "steer", "expected_steering_run_public_id": where.workspace.public_id}
    assert refusal(send(api, where, **wrong)) == (409, "steering_target_changed")
    right = {"delivery_mode": "steer", "expected_steering_run_public_id": run_id}
    answer = send(api, where, **right)
    row = answer.json()["input"]
    assert (row["state"], row["expected_steering_run_public_id"]) == ("steering", run_id)
    listed = api.get(f"{where.path}/inputs").json()["inputs"]
    assert [it["public_id"] for it in listed] == [row["public_id"]]
    path = f"{where.path}/inputs/{row['public_id']}"
    assert api.get(f"{path}/materialization").status_code == 404
    assert api.delete(path).status_code == 204
    assert api.get(f"{where.path}/inputs").json()["inputs"] == []


def test_where_nothing_runs_there_is_no_target(api, where):
    body = {"delivery_mode": "steer_now", "expected_steering_run_public_id": "x"}
    assert refusal(send(api, where, **body)) == (409, "steering_target_changed")
    assert send(api, where, delivery_mode="steer_now").json()["input"]["state"] == "pending"
    assert len(turns(api, where)) == 1


def test_what_is_held_hears_nothing_now(api, database, where, busy):
    def ask_a_person(tx):
        first = tasks.add_round(tx, busy.run)
        (call,) = tasks.add_calls(tx, busy.run, first, [Call("rm", "{}", "c")])
        tasks.start(tx, busy.run, call, "needs_approval")
        return call

    call = database.write(ask_a_person)
    assert refusal(send(api, where, delivery_mode="steer_now")) == (409, "steering_held")
    assert send(api, where, delivery_mode="steer").json()["input"]["state"] == "steering"
    database.write(lambda tx: tasks.settle(tx, busy.run, call))
    database.write(lambda tx: runs.move(tx, busy.run, "paused"))
    assert refusal(send(api, where, key="2", delivery_mode="steer_now")) == (409, "steering_held")
    assert api.get(f"{where.path}/inputs").json()["input_queue"]["held"] is True


def test_a_queue_takes_a_hundred(api, database, where, busy):
    for n in range(99):
        assert send(api, where, key=str(n), kind="message").status_code == 202
    assert send(api, where, key="s", delivery_mode="steer").status_code == 202
    assert refusal(send(api, where, key="more")) == (409, "input_queue_full")
    assert refusal(send(api, where, key="more", delivery_mode="steer")) == (409, "input_queue_full")
    places = [it["queue_position"] for it in api.get(f"{where.path}/inputs").json()["inputs"]]
    assert places == list(range(1, 101))
