"""Inputs that wait are edited, deleted, put in another order; blocked ones hold the queue."""

import pytest

import story
from stenograph.conversations import input as inputs
from stenograph.conversations import reach, store_inputs
from stenograph.conversations.wishes import Wishes, write
from stenograph.ids import new_id

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


@pytest.fixture
def busy(database, where):
    """A turn that a run answers; it is settled by `settle`."""
    return database.write(lambda tx: story.open_run(tx, where))


@pytest.fixture
def settle(database, where, busy):
    def end():
        def act(tx):
            story.finish(tx, busy)
            inputs.advance(tx, where.conversation.id)

        database.write(act)

    return end


def send(api, where, text="Hello", **body):
    body = {"kind": "message", "text": text} | body
    headers = {"Idempotency-Key": new_id()}
    answer = api.post(f"{where.path}/inputs", json={"input": body}, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()["input"]


def edit(api, where, sent, key=None, **body):
    path = f"{where.path}/inputs/{sent['public_id']}"
    return api.patch(path, json={"input": body}, key=key)


def waiting(api, where):
    return api.get(f"{where.path}/inputs").json()["inputs"]


def events(api, where, *types):
    page = api.get(f"{where.path}/events", params={"limit": 200}).json()["events"]
    return [event["payload"] for event in page if event["type"] in types]


def contents(api, where):
    turns = api.get(f"{where.path}/turns").json()["turns"]
    shown = [turn["active_variant"] for turn in turns]
    return [it.get("content", it.get("prompt_text")) for it in shown]


def refusal(answer):
    return answer.status_code, answer.json()["error"]["code"]


def test_what_waits_is_edited(api, where, busy, settle):
    sent = send(api, where, visible_in_context=False)
    answer = edit(api, where, sent, text="Bye", role="system", expected_lock_version=0)
    assert answer.status_code == 200
    row = answer.json()["input"]
    assert (row["text"], row["role"], row["lock_version"]) == ("Bye", "system", 1)
    assert row["context_options"] == {"visible_in_context": False}
    assert [row] == waiting(api, where)
    assert events(api, where, "input_edited") == [
        {"input_public_id": sent["public_id"], "lock_version": 1}
    ]
    answer = edit(api, where, sent, text="Late", expected_lock_version=0)
    assert refusal(answer) == (409, "stale_object")
    # Null is as it comes, and what is absent stays.
    row = edit(api, where, sent, visible_in_context=None).json()["input"]
    assert (row["text"], row["context_options"]) == ("Bye", {"visible_in_context": True})
    settle()
    assert refusal(edit(api, where, sent, text="Later")) == (409, "stale_object")
    assert contents(api, where)[-1] == "Bye"


def test_an_edit_keeps_the_rules(api, where, busy):
    sent = send(api, where)
    for body, code in [
        ({"text": " "}, "validation_failed"),
        ({"text": None}, "validation_failed"),
        ({"model": {"model": "dev/small"}}, "validation_failed"),
        ({"steps": [{}]}, "invalid_steps"),
    ]:
        assert refusal(edit(api, where, sent, **body)) == (422, code)
    assert refusal(edit(api, where, sent, kind="direct_reply")) == (400, "parameter_invalid")
    question = send(api, where, kind="direct_reply")
    wish = {"model": "nobody/knows"}
    assert refusal(edit(api, where, question, model=wish)) == (422, "validation_failed")
    entries = [{"role": "user", "text": "Raw"}]
    answer = edit(api, where, question, context_mode="raw", entries=entries)
    assert answer.json()["input"]["context_options"]["entries"] == entries
    assert "text" not in answer.json()["input"]
    row = edit(api, where, question, entries=None, text="Words").json()["input"]
    assert (row["text"], row["context_mode"]) == ("Words", "raw")
    assert waiting(api, where)[0] == sent


def test_what_waits_is_deleted_for_good(api, database, where, busy, settle):
    first, second = send(api, where, "one"), send(api, where, "two")
    path = f"{where.path}/inputs/{first['public_id']}"
    assert api.delete(path).status_code == 204
    assert api.delete(path).status_code == 404
    assert [it["public_id"] for it in waiting(api, where)] == [second["public_id"]]
    assert events(api, where, "input_deleted") == [{"input_public_id": first["public_id"]}]
    with database.read() as tx:
        assert tx.rows("SELECT id FROM inputs WHERE text = 'one'") == []
    settle()
    path = f"{where.path}/inputs/{second['public_id']}"
    assert refusal(api.delete(path)) == (409, "stale_object")


def test_the_same_key_finds_a_deleted_input_no_more(api, where, busy):
    headers, body = {"Idempotency-Key": "k"}, {"input": {"kind": "message", "text": "x"}}
    sent = api.post(f"{where.path}/inputs", json=body, headers=headers).json()["input"]
    api.delete(f"{where.path}/inputs/{sent['public_id']}")
    assert api.post(f"{where.path}/inputs", json=body, headers=headers).status_code == 404


def test_the_queue_is_put_in_order(api, where, busy, settle):
    rows = [send(api, where, text) for text in ("a", "b", "c")]
    steer = send(api, where, "s", kind="direct_reply", delivery_mode="steer")
    ids = [row["public_id"] for row in rows]
    answer = api.post(f"{where.path}/inputs/reorder", json={"inputs": [ids[2], ids[0], ids[1]]})
    assert answer.status_code == 200
    assert answer.json()["inputs"] == waiting(api, where)
    listed = [it["text"] for it in waiting(api, where)]
    assert listed == ["c", "a", "b", "s"]
    for named in (
        ids[:2], [*ids, ids[0]], [ids[0], ids[0], ids[1]], [*ids, steer["public_id"]], [],
        [*ids[:2], NOWHERE],
    ):  # fmt: skip
        answer = api.post(f"{where.path}/inputs/reorder", json={"inputs": named})
        assert refusal(answer) == (409, "queue_changed")
    send(api, where, "d")
    assert [it["text"] for it in waiting(api, where)] == ["c", "a", "b", "d", "s"]
    settle()
    # The steer came too late, and stands in line as it came.
    assert contents(api, where) == ["Two files.", "c", "a", "b", "s"]
    assert [it["text"] for it in waiting(api, where)] == ["d"]


@pytest.fixture
def kernel(database, where, busy):
    """A result that the system put in, in front of what people said."""

    def put(tx):
        wishes = Wishes(sender_conversation=NOWHERE, callback_result={"status": "completed"})
        public_id = new_id()
        store_inputs.add(
            tx,
            where.conversation.id,
            public_id=public_id,
            state="pending",
            kind="direct_reply",
            role="user",
            origin="task_result",
            text="It is done.",
            options=write(wishes),
            created_at=1,
        )
        return {"public_id": public_id}

    return database.write(put)


def test_what_the_system_put_in_comes_first_and_stays(api, where, kernel):
    said = send(api, where)
    first, second = waiting(api, where)
    assert (first["public_id"], second["public_id"]) == (kernel["public_id"], said["public_id"])
    assert first["sender_conversation_public_id"] == NOWHERE
    assert first["callback_result"] == {"status": "completed"}
    assert first["speaker"] is None
    answer = edit(api, where, kernel, text="x")
    assert refusal(answer) == (409, "kernel_input_immutable")
    answer = api.delete(f"{where.path}/inputs/{kernel['public_id']}")
    assert refusal(answer) == (409, "kernel_input_immutable")
    path = f"{where.path}/inputs/reorder"
    both = [said["public_id"], kernel["public_id"]]
    assert refusal(api.post(path, json={"inputs": both})) == (409, "queue_changed")
    assert api.post(path, json={"inputs": both[:1]}).status_code == 200


# --- blocked inputs ------------------------------------------------------------------------------


def assert_blocked(api, where, reason):
    held = api.get(f"{where.path}/inputs").json()
    head = held["inputs"][0]
    assert held["input_queue"]["held"] is True
    assert (head["state"], head["blocked_reason"]) == ("blocked", reason)
    assert events(api, where, "input_blocked") == [
        {"input_public_id": head["public_id"], "blocked_reason": reason}
    ]
    document = api.get(where.path).json()["conversation"]
    assert document["input_queue"]["held"] is True
    return head


def test_a_stale_fence_blocks_until_it_is_renewed(api, where, busy, settle):
    sent = send(api, where, expected_context_revision=context(api, where))
    send(api, where, "behind")
    settle()
    assert_blocked(api, where, "stale_context")
    assert refusal(edit(api, where, sent, text="again")) == (409, "stale_context")
    assert contents(api, where) == ["Two files."]
    answer = edit(api, where, sent, expected_context_revision=context(api, where))
    assert answer.json()["input"]["lock_version"] == 1
    assert contents(api, where) == ["Two files.", "Hello", "behind"]
    assert api.get(f"{where.path}/inputs").json() == {
        "inputs": [],
        "input_queue": {"limit": 100, "held": False},
    }


def context(api, where):
    return api.get(where.path).json()["conversation"]["context_revision"]


def test_a_tail_that_is_still_there_lets_through(api, where, busy, settle):
    tail = busy.turn.public_id
    send(api, where, "first", expected_tail_turn_public_id=tail)
    late = send(api, where, "second", expected_tail_turn_public_id=tail)
    settle()
    assert contents(api, where) == ["Two files.", "first"]
    head = assert_blocked(api, where, "stale_timeline")
    assert head["public_id"] == late["public_id"]
    assert api.delete(f"{where.path}/inputs/{late['public_id']}").status_code == 204
    assert api.get(f"{where.path}/inputs").json()["input_queue"]["held"] is False


def test_an_answerer_who_left_blocks(api, database, where, busy, settle):
    sent = send(api, where, kind="direct_reply", answering_user_public_id="@agent")
    story.run_sql(database, "UPDATE principals SET deactivated_at = 1 WHERE handle = 'agent'")
    settle()
    assert_blocked(api, where, "answerer_not_eligible")
    answer = edit(api, where, sent, text="Anyone")
    assert refusal(answer) == (422, "answerer_not_eligible")
    answer = edit(api, where, sent, answering_user_public_id=None)
    assert answer.json()["input"]["answering_user_public_id"] is None
    assert contents(api, where) == ["Two files.", "Hello"]


def test_a_model_that_was_removed_blocks(api, where, busy, settle, monkeypatch):
    sent = send(api, where, kind="direct_reply", model={"model": "dev/small"})
    send(api, where, "behind")
    monkeypatch.setattr(reach, "_asked", [lambda model: model != "dev/small"])
    settle()
    assert_blocked(api, where, "model_unavailable")
    rows = [it["public_id"] for it in waiting(api, where)]
    # Who puts another one first lets that through.
    api.post(f"{where.path}/inputs/reorder", json={"inputs": rows[::-1]})
    assert contents(api, where) == ["Two files.", "behind"]
    edit(api, where, sent, model={"model": "dev/thinker"})
    assert contents(api, where) == ["Two files.", "behind", "Hello"]


def test_a_file_that_is_gone_blocks(api, database, where, busy, settle):
    file = {"filename": "a.txt", "content_type": "text/plain", "data": "YQ=="}
    sent = send(api, where, attachments=[file])
    story.run_sql(database, "DELETE FROM attachments")
    settle()
    assert_blocked(api, where, "attachment_missing")
    edit(api, where, sent, attachments=None)
    assert contents(api, where) == ["Two files.", "Hello"]


# --- scheduled inputs -----------------------------------------------------------------------------


def test_a_scheduled_input_is_passed_over_and_keeps_its_place(api, where, busy, settle):
    later = send(api, where, "later", deliver_in=3600)
    send(api, where, "now")
    assert [it["text"] for it in waiting(api, where)] == ["later", "now"]
    settle()
    assert contents(api, where) == ["Two files.", "now"]
    assert [it["queue_position"] for it in waiting(api, where)] == [1]
    row = edit(api, where, later, deliver_at="2020-01-01T00:00:00+00:00").json()["input"]
    assert row["deliver_at"] == "2020-01-01T00:00:00Z"
    assert contents(api, where) == ["Two files.", "now", "later"]


def test_what_is_scheduled_for_now_is_delivered(api, where):
    send(api, where, "past", deliver_at="2020-01-01T00:00:00Z")
    send(api, where, "now", deliver_in=0)
    assert contents(api, where) == ["past", "now"]


# --- who may ------------------------------------------------------------------------------------


def requests(path, sent):
    one = f"{path}/inputs/{sent['public_id']}"
    return [
        ("PATCH", one, {"input": {"text": "x"}}),
        ("DELETE", one, None),
        ("POST", f"{path}/inputs/reorder", {"inputs": []}),
    ]


def test_an_archive_is_not_edited_and_lets_go(api, database, where, busy):
    sent = send(api, where)
    story.archive(database, where)
    change, leave, order = requests(where.path, sent)
    for method, path, body in (change, order):
        assert refusal(api.request(method, path, json=body)) == (409, "conversation_archived")
    story.run_sql(database, "UPDATE workspaces SET state = 'archived'")
    assert refusal(api.request(*leave[:2])) == (409, "workspace_not_active")
    story.run_sql(database, "UPDATE workspaces SET state = 'active'")
    assert api.request(*leave[:2]).status_code == 204


def test_a_list_takes_the_same_statements_however_long(api, database, where, busy):
    def asked():
        seen = []
        database.observer = seen.append
        api.get(f"{where.path}/inputs")
        database.observer = None
        return len(seen)

    file = {"filename": "a.txt", "content_type": "text/plain", "data": "YQ=="}
    send(api, where, attachments=[file])
    one = asked()
    for _ in range(20):
        send(api, where, attachments=[file])
    assert asked() == one <= 7
