"""Inputs of kind message, and the events that tell of them (agent-api.md 3.2 and 7)."""

import pytest

import story
from stenograph.conversations import input as inputs


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


def send(api, where, key="k", **body):
    headers = {"Idempotency-Key": key}
    body = {"kind": "message", "text": "Hello"} | body
    return api.post(f"{where.path}/inputs", json={"input": body}, headers=headers)


def test_a_message_becomes_a_completed_turn_at_once(api, where, org):
    answer = send(api, where)
    assert answer.status_code == 202
    sent = answer.json()["input"]
    assert (sent["state"], sent["kind"], sent["text"]) == ("pending", "message", "Hello")
    assert api.get(f"{where.path}/inputs").json() == {
        "inputs": [],
        "input_queue": {"limit": 100, "held": False},
    }
    became = api.get(f"{where.path}/inputs/{sent['public_id']}/materialization").json()
    (turn,) = api.get(f"{where.path}/turns").json()["turns"]
    assert became == {
        "materialization": {
            "input_public_id": sent["public_id"],
            "turn_public_id": turn["public_id"],
            "variant_public_id": turn["active_variant"]["public_id"],
            "run_public_id": None,
        }
    }
    assert (turn["kind"], turn["role"], turn["status"]) == ("message", "user", "completed")
    assert turn["input_public_id"] == sent["public_id"]
    assert turn["speaker"]["user_public_id"] == org.owner.principal_public_id
    active = turn["active_variant"]
    assert (active["source"], active["status"], active["content"]) == (
        "manual",
        "completed",
        "Hello",
    )
    assert "model" not in active
    assert "prompt_text" not in active


def test_its_four_events_name_the_same_rows(api, where):
    sent = send(api, where).json()["input"]
    (turn,) = api.get(f"{where.path}/turns").json()["turns"]
    page = api.get(f"{where.path}/events").json()
    named = {
        "turn_public_id": turn["public_id"],
        "variant_public_id": turn["active_variant"]["public_id"],
    }
    assert [(event["type"], event["payload"]) for event in page["events"]] == [
        (
            "input_accepted",
            {"input_public_id": sent["public_id"], "kind": "message", "delivery_mode": "queue"},
        ),
        ("input_materialized", named | {"input_public_id": sent["public_id"]}),
        ("turn_created", named | {"turn_kind": "message", "status": "completed"}),
        (
            "turn_status",
            named | {"turn_kind": "message", "status": "completed", "variant_status": "completed"},
        ),
    ]
    assert "Hello" not in str(page)


def test_events_page_by_replay_cursors_to_a_watermark(api, where):
    for n in range(3):
        send(api, where, key=str(n))
    found, after = [], None
    while True:
        query = {"limit": 5} | ({} if after is None else {"after": after})
        page = api.get(f"{where.path}/events", params=query).json()
        assert page["pagination"]["watermark"] == 12
        if not page["events"]:
            assert page["pagination"]["next_after"] is None
            break
        found += page["events"]
        after = page["pagination"]["next_after"]
    assert [event["sequence"] for event in found] == list(range(1, 13))
    assert found[6]["cursor"] == "Y3ZlaTo3"
    assert list(found[0]) == [
        "public_id", "sequence", "cursor", "type", "resource", "occurred_at", "payload",
    ]  # fmt: skip
    assert found[0]["resource"] == {
        "type": "conversation",
        "public_id": where.conversation.public_id,
    }
    latest = api.get(where.path).json()["conversation"]["latest_event_cursor"]
    assert latest == found[-1]["cursor"]


def test_bad_event_parameters(api, where):
    for query in [{"limit": "0"}, {"limit": "201"}, {"after": "YWx0cjo3"}, {"after": "7"}]:
        answer = api.get(f"{where.path}/events", params=query)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == f"Invalid parameter: {next(iter(query))}"


def test_many_at_once_take_their_own_positions(api, where):
    requests = [
        (
            "POST",
            f"{where.path}/inputs",
            {
                "json": {"input": {"kind": "message", "text": str(n)}},
                "headers": {"Idempotency-Key": str(n)},
            },
        )
        for n in range(8)
    ]
    assert {answer.status_code for answer in api.together(*requests)} == {202}
    turns = api.get(f"{where.path}/turns").json()["turns"]
    assert [turn["position"] for turn in turns] == list(range(8))
    assert {turn["active_variant"]["content"] for turn in turns} == set("01234567")


def test_a_message_waits_while_a_turn_is_answered(api, database, where):
    said = database.write(lambda tx: story.open_run(tx, where))
    sent = send(api, where).json()["input"]
    (waiting,) = api.get(f"{where.path}/inputs").json()["inputs"]
    assert (waiting["public_id"], waiting["queue_position"]) == (sent["public_id"], 1)
    path = f"{where.path}/inputs/{sent['public_id']}/materialization"
    assert api.get(path).status_code == 404

    def settle(tx):
        story.finish(tx, said)
        inputs.advance(tx, where.conversation.id)

    database.write(settle)
    assert api.get(path).status_code == 200
    assert [t["position"] for t in api.get(f"{where.path}/turns").json()["turns"]] == [0, 1]


def test_a_refused_input_changes_nothing(api, where):
    for body, status, code in [
        ({"kind": "direct_reply", "variables": {"a": 1}}, 422, "validation_failed"),
        ({"kind": "compaction_summary"}, 400, "parameter_invalid"),
        ({"text": " \n"}, 422, "validation_failed"),
        ({"text": None}, 422, "validation_failed"),
        ({"model": {"model": "a/b"}}, 422, "validation_failed"),
        ({"delivery_mode": "steer"}, 422, "validation_failed"),
        ({"role": "robot"}, 400, "parameter_invalid"),
        ({"txet": "x"}, 400, "parameter_invalid"),
        ({"expected_context_revision": 7}, 409, "stale_context"),
        ({"expected_tail_turn_public_id": "x"}, 409, "stale_timeline"),
    ]:
        answer = send(api, where, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert api.get(f"{where.path}/events").json()["events"] == []
    assert send(api, where, expected_context_revision=0).status_code == 202


def test_a_body_that_cannot_be_read(api, where):
    for content in [b"", b"{", b"[]", b"\xff", b'"x"', b"[" * 100_000]:
        answer = api.post(f"{where.path}/inputs", content=content, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] in ("bad_request", "parameter_invalid")


def test_what_is_archived_takes_no_input(api, database, where):
    story.archive(database, where)
    answer = send(api, where)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conversation_archived")
    story.run_sql(database, "UPDATE workspaces SET state = 'archived'")
    assert send(api, where).json()["error"]["code"] == "workspace_not_active"


def test_a_message_may_stay_out_of_the_context(api, where):
    send(api, where, visible_in_context=False, role="system")
    (turn,) = api.get(f"{where.path}/turns").json()["turns"]
    assert (turn["visibility"], turn["role"]) == ("excluded_from_context", "system")


def test_what_was_hidden_or_concealed_did_not_materialize(api, where):
    sent = send(api, where).json()["input"]
    send(api, where, key="2")
    path = f"{where.path}/inputs/{sent['public_id']}/materialization"
    turn = api.get(path).json()["materialization"]["turn_public_id"]
    api.patch(f"{where.path}/turns/{turn}", json={"turn": {"visibility": "hidden"}})
    assert api.get(path).status_code == 404
    assert api.get(path, params={"include_hidden": "1"}).status_code == 200
    api.patch(f"{where.path}/turns/{turn}", json={"turn": {"concealed": True}})
    assert api.get(path, params={"include_hidden": "1"}).status_code == 404


def test_an_agent_is_the_origin_of_what_it_sends(api, where):
    headers = {"Idempotency-Key": "k"}
    body = {"input": {"kind": "message", "text": "x"}}
    answer = api.post(f"{where.path}/inputs", key="member:agent", json=body, headers=headers)
    assert answer.json()["input"]["origin"] == "agent"
    assert api.get(f"{where.path}/turns").json()["turns"][0]["speaker"]["kind"] == "agent"
