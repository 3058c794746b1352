"""Turns that are edited and deleted: what every reading says after it, and what is refused."""

import pytest

import story
from stenograph.conversations import conversation, search_index, turn, variant
from stenograph.conversations import input as inputs
from stenograph.retention.integrity import check
from stenograph.runs import task
from stenograph.runs.task import Call
from stenograph.sessions import conversing


@pytest.fixture
def where(database, org):
    """A conversation as the API makes it: a session with a feed and a trajectory."""
    made = story.place(database, org.owner)
    database.write(lambda tx: conversing.begin(tx, org.owner, made.conversation.id))
    return made


def refused(answer):
    return answer.status_code, answer.json()["error"]["code"]


def say(database, where, text, *, kind="message", role="user"):
    """Say something through the queue; it is in the feed and in the trajectory."""

    def act(tx):
        sent = inputs.accept(tx, where.caller, where.conversation, kind=kind, role=role, text=text)
        conversing.catch_up(tx, where.conversation.id)
        made = inputs.materialization(tx, where.conversation, sent.public_id)
        found = turn.find(tx, where.conversation, made.turn)
        return story.Said(found, variant.find(tx, found, made.variant))

    return database.write(act)


def answered(api, database, where, text="What is it?"):
    """Ask, and answer by an edit; no model is needed for an answer."""
    said = say(database, where, text, kind="direct_reply")
    database.write(lambda tx: variant.settle(tx, said.turn, said.variant, "failed"))
    assert api.post(where.turn(said) + "/edit", json={"edit": {"text": "42."}}).status_code == 200
    return said


def feed(api, where):
    path = f"{api.v3}/sessions/{where.conversation.public_id}/conversation"
    return [(it["kind"], it["content"]) for it in api.get(path).json()["items"]]


def trajectory(api, where):
    path = f"{api.v3}/sessions/{where.conversation.public_id}/trajectory"
    return [(it["source"], it["message"]) for it in api.get(path).json()["steps"]]


def found_by_search(api, database, where, word):
    search_index.catch_up(database)
    path = where.path.rpartition("/conversations/")[0] + "/conversation_search"
    return len(api.get(path, params={"query": word}).json()["matches"])


def rows_with(database, word):
    """Every table and column that holds a word."""
    with database.read() as tx:
        if tx.dialect == "sqlite":
            columns = tx.rows(
                "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
                " WHERE m.type = 'table' AND c.type = 'TEXT' AND m.name NOT LIKE 'sqlite_%'"
                " AND m.name NOT LIKE 'search_index%'"
            )
        else:
            columns = tx.rows(
                "SELECT table_name, column_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND data_type = 'text'"
            )
        return {
            f"{table}.{column}"
            for table, column in columns
            if tx.value(f"SELECT 1 FROM {table} WHERE {column} LIKE '%' || :word || '%'", word=word)
        }


# --- edits --------------------------------------------------------------------------------------


def test_an_edited_message_says_the_new_words_everywhere(api, database, where):
    said = say(database, where, "Helo wombat")
    answer = api.post(where.turn(said) + "/edit", json={"edit": {"text": "Hello wallaby"}})
    assert answer.status_code == 200
    made = answer.json()["variant"]
    assert (made["source"], made["status"], made["active"]) == ("edit", "completed", True)
    assert made["content"] == "Hello wallaby"
    assert made["origin_variant_public_id"] == said.variant.public_id
    deck = api.get(where.turn(said) + "/variants").json()["variants"]
    assert [(it["source"], it["content"], it["active"]) for it in deck] == [
        ("manual", "Helo wombat", False),
        ("edit", "Hello wallaby", True),
    ]
    assert feed(api, where) == [("prompt", "Hello wallaby")]
    assert trajectory(api, where) == [("user", "Hello wallaby")]
    assert found_by_search(api, database, where, "wallaby") == 1
    assert found_by_search(api, database, where, "wombat") == 0
    types = [e["type"] for e in api.get(f"{where.path}/events").json()["events"]]
    assert types[-2:] == ["turn_variant", "turn_status"]
    assert check(database) == []
    # The first words may be concealed now, and may not come back into the feed by that.
    assert api.patch(where.variant(said), json={"variant": {"concealed": True}}).status_code == 200
    assert feed(api, where) == [("prompt", "Hello wallaby")]


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_words_of_every_role_are_edited(api, database, where, role):
    said = say(database, where, "before", role=role)
    assert api.post(where.turn(said) + "/edit", json={"edit": {"text": "now"}}).status_code == 200
    source = "agent" if role == "assistant" else "system"
    assert trajectory(api, where) == [(source, "now")]
    assert feed(api, where) == ([("message", "now")] if role == "assistant" else [])
    assert check(database) == []


def test_an_edited_answer_keeps_its_question(api, database, where):
    said = answered(api, database, where)
    assert feed(api, where) == [("prompt", "What is it?"), ("reply", "42.")]
    assert trajectory(api, where) == [("user", "What is it?"), ("agent", "42.")]
    found = api.get(where.turn(said)).json()["turn"]
    assert found["status"] == "completed"
    assert found["active_variant"]["prompt_text"] == "What is it?"
    assert api.post(where.variant(said) + "/activation").status_code == 200
    assert feed(api, where) == [("prompt", "What is it?"), ("reply", "")]
    assert trajectory(api, where) == [("user", "What is it?")]
    assert check(database) == []


def test_entries_are_joined(api, database, where):
    said = say(database, where, "x")
    entries = [
        {"role": "user", "text": "One."},
        {"role": "user", "parts": [{"type": "text", "text": "Two."}]},
    ]
    answer = api.post(where.turn(said) + "/edit", json={"edit": {"entries": entries}})
    assert answer.json()["variant"]["content"] == "One.\n\nTwo."


def test_what_no_edit_says(api, database, where):
    said = say(database, where, "x")
    call = {"type": "tool_call", "id": "c", "name": "ls", "arguments": "{}"}
    for edit, wanted in (
        ({}, (422, "validation_failed")),
        ({"text": "a", "entries": []}, (422, "validation_failed")),
        ({"text": " \n"}, (422, "validation_failed")),
        ({"entries": []}, (422, "validation_failed")),
        ({"entries": [{"role": "user"}]}, (422, "validation_failed")),
        ({"entries": [{"role": "user", "parts": [call]}]}, (422, "validation_failed")),
        ({"text": "x" * 1_000_001}, (422, "validation_failed")),
        ({"text": 5}, (400, "parameter_invalid")),
        ({"word": "a"}, (400, "parameter_invalid")),
    ):
        answer = api.post(where.turn(said) + "/edit", json={"edit": edit})
        assert refused(answer) == wanted, edit
    assert refused(api.post(where.turn(said) + "/edit", json={})) == (400, "parameter_missing")
    assert len(api.get(where.turn(said) + "/variants").json()["variants"]) == 1


EDIT = {"edit": {"text": "new"}}


def test_what_is_not_edited(api, database, where):
    older = say(database, where, "one")
    newest = say(database, where, "two")
    assert refused(api.post(where.turn(older) + "/edit", json=EDIT)) == (409, "branch_required")
    story.run_sql(database, "UPDATE turns SET origin = 'child' WHERE id = :id", id=newest.turn.id)
    assert refused(api.post(where.turn(newest) + "/edit", json=EDIT)) == (409, "kernel_authored")
    story.run_sql(database, "UPDATE turns SET kind = 'compaction_summary', origin = 'person'")
    assert refused(api.post(where.turn(newest) + "/edit", json=EDIT)) == (409, "kernel_authored")
    story.run_sql(database, "UPDATE turns SET kind = 'message'")
    running = say(database, where, "three", kind="direct_reply")
    assert refused(api.post(where.turn(newest) + "/edit", json=EDIT)) == (409, "conversation_busy")
    assert refused(api.post(where.turn(running) + "/edit", json=EDIT)) == (409, "run_live")
    story.archive(database, where)
    assert refused(api.post(where.turn(running) + "/edit", json=EDIT)) == (
        409,
        "conversation_archived",
    )


def test_what_an_agent_elsewhere_said_is_not_edited(api, database, where):
    said = say(database, where, "one")
    story.run_sql(database, """UPDATE sessions SET agent = '{"name":"a","version":"1"}'""")
    answer = api.post(where.turn(said) + "/edit", json=EDIT)
    assert refused(answer) == (409, "session_target_unavailable")


# --- deletion -----------------------------------------------------------------------------------


def test_a_deleted_turn_is_in_no_reading_and_in_no_table(api, database, where):
    say(database, where, "Hello")
    said = answered(api, database, where, "What is a pangolin?")
    revision = api.get(where.path).json()["conversation"]["context_revision"]
    assert found_by_search(api, database, where, "pangolin") == 1
    assert api.delete(where.turn(said)).status_code == 204
    assert api.delete(where.turn(said)).status_code == 404
    assert api.get(where.turn(said)).status_code == 404
    assert feed(api, where) == [("prompt", "Hello")]
    assert trajectory(api, where) == [("user", "Hello")]
    assert found_by_search(api, database, where, "pangolin") == 0
    assert rows_with(database, "pangolin") == set()
    found = api.get(where.path).json()["conversation"]
    assert found["context_revision"] > revision
    session = api.get(f"{api.v3}/sessions/{where.conversation.public_id}").json()
    assert session["status"] == "exit"
    event = api.get(f"{where.path}/events", params={"limit": 200}).json()["events"][-1]
    assert (event["type"], event["payload"]) == (
        "turn_deleted",
        {"turn_public_id": said.turn.public_id, "position": 1},
    )
    assert check(database) == []
    # Its place is given again, and every reading goes on.
    again = say(database, where, "And now?")
    assert again.turn.position == 1
    assert feed(api, where) == [("prompt", "Hello"), ("message", "And now?")]
    assert check(database) == []


def test_all_that_hangs_on_a_turn_goes(api, database, where):
    """A run with every kind of task, its requests, steers and files, and what it cost stays."""
    said = story.branched(database, where)
    database.write(lambda tx: story.finish(tx, said))
    usage = api.get(where.path).json()["conversation"]["usage_summary"]
    steer = say_into(database, where, said)
    assert api.delete(where.turn(said)).status_code == 204
    for word in ("First I list", "superseded", "From the branch", "Look around", steer):
        assert rows_with(database, word) == set(), word
    with database.read() as tx:
        for table in ("variants", "runs", "tasks", "invocations", "inputs", "attachments"):
            assert tx.value(f"SELECT count(*) FROM {table}") == 0, table
        assert tx.value("SELECT count(*) FROM usage_receipts") == 5
    after = api.get(where.path).json()["conversation"]
    assert after["usage_summary"] == usage
    assert after["context"] is None
    assert api.get(where.run(said)).status_code == 404
    assert check(database) == []


def say_into(database, where, said):
    """Let the turn have taken in an input that brought a file."""

    def act(tx):
        sent = inputs.accept(
            tx, where.caller, where.conversation, kind="message", text="steer this"
        )
        made = inputs.materialization(tx, where.conversation, sent.public_id)
        gone = turn.find(tx, where.conversation, made.turn)
        tx.run("UPDATE inputs SET turn_id = NULL")
        tx.run("UPDATE turns SET input_id = NULL")
        tx.run("DELETE FROM turns WHERE id = :id", id=gone.id)
        tx.run("UPDATE conversations SET next_position = 1")
        tx.run(
            "UPDATE events SET turn_id = CASE WHEN type = 'input_materialized' THEN"
            " CAST(:id AS BIGINT) END, variant_id = NULL WHERE turn_id = :gone",
            id=said.turn.id,
            gone=gone.id,
        )
        tx.insert(
            "attachments",
            public_id="a",
            conversation_id=where.conversation.id,
            input_id=tx.value("SELECT id FROM inputs"),
            variant_id=said.variant.id,
            filename="f",
            content_type="text/plain",
            byte_size=1,
            data=b"x",
            created_at=1,
        )

    database.write(act)
    return "steer this"


def test_subagents_go_with_the_turn_that_started_them(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        first = task.add_round(tx, said.run)
        (call,) = task.add_calls(tx, said.run, first, [Call("spawn", "{}")])
        child = conversation.create(tx, where.caller, where.workspace, title="child")
        tx.run(
            "UPDATE conversations SET parent_id = :parent, spawn_key = 'r2t0' WHERE id = :id",
            parent=where.conversation.id,
            id=child.id,
        )
        tx.run(
            "UPDATE tasks SET child_conversation_id = :child WHERE id = :id",
            child=child.id,
            id=call.id,
        )
        story.think(tx, said, first, None)
        task.settle(tx, said.run, call)
        return story.finish(tx, said), story.Place(where.caller, where.workspace, child)

    said, child = database.write(make)
    opened = database.write(
        lambda tx: turn.open(tx, child.conversation.id, status="pending", origin="agent")
    )
    busy = database.write(
        lambda tx: variant.add(tx, opened, source="run", status="pending", prompt="Reckon.")
    )
    shown = api.get(child.turn(opened)).json()["turn"]
    assert shown["sender_conversation_public_id"] == where.conversation.public_id
    assert shown["sender_run_public_id"] == said.run.public_id
    assert shown["sender_task_key"] == "r2t0"
    detail = api.get(where.run(said) + "/tasks/r2t0").json()["task"]
    assert detail["child_conversation_public_id"] == child.conversation.public_id
    assert refused(api.delete(where.turn(said))) == (409, "run_live")
    database.write(lambda tx: variant.settle(tx, opened, busy, "completed", content="42"))
    assert api.delete(where.turn(said)).status_code == 204
    assert api.get(child.path).status_code == 404
    assert api.get(where.path + "/children").json()["conversations"] == []


def test_what_is_not_deleted(api, database, where):
    older = say(database, where, "one")
    newest = say(database, where, "two")
    assert refused(api.delete(where.turn(older))) == (409, "apex_only")
    side = api.post(
        where.path + "/forks",
        json={"fork": {"side": True}},
        headers={"Idempotency-Key": "side"},
    ).json()["conversation"]["public_id"]
    assert refused(api.delete(where.turn(newest))) == (409, "descendant_pinned")
    home = where.path.rpartition("/")[0]
    assert api.delete(f"{home}/{side}").status_code == 204
    running = say(database, where, "three", kind="direct_reply")
    assert refused(api.delete(where.turn(newest))) == (409, "apex_only")
    assert refused(api.delete(where.turn(running))) == (409, "run_live")
    story.archive(database, where)
    assert refused(api.delete(where.turn(running))) == (409, "conversation_archived")
    assert len(api.get(where.path + "/turns").json()["turns"]) == 3


def test_a_candidate_that_is_made_beside_the_shown_one_is_live(api, database, where):
    said = answered(api, database, where)
    database.write(
        lambda tx: variant.add(tx, said.turn, source="run", status="running", activate=False)
    )
    assert refused(api.delete(where.turn(said))) == (409, "run_live")
    assert refused(api.post(where.turn(said) + "/edit", json=EDIT)) == (409, "run_live")


def test_a_deleted_fork_pins_nothing(api, database, where):
    said = say(database, where, "one")
    point = say(database, where, "two")
    child = story.forked(database, where, point)
    assert api.delete(where.turn(point)).status_code == 204
    assert refused(api.delete(where.turn(said))) == (409, "descendant_pinned")
    shown = api.get(child.path).json()["conversation"]
    assert shown["forked_from_turn_public_id"] is None
    assert shown["source_conversation_public_id"] == where.conversation.public_id
    assert [it["position"] for it in api.get(child.path + "/turns").json()["turns"]] == [0, 1]
    assert check(database) == []
    story.tombstone(database, child)
    assert api.delete(where.turn(said)).status_code == 204
    assert check(database) == []


def test_a_forks_own_turn_goes_and_what_it_inherits_stays_its_owners(api, database, where):
    said = say(database, where, "one")
    child = story.forked(database, where, say(database, where, "two"))
    (own,) = [it for it in api.get(child.path + "/turns").json()["turns"] if not it["inherited"]]
    assert refused(api.delete(child.turn(said))) == (403, "not_authorized")
    assert refused(api.post(child.turn(said) + "/edit", json=EDIT)) == (403, "not_authorized")
    assert api.delete(f"{child.path}/turns/{own['public_id']}").status_code == 204
    assert [it["position"] for it in api.get(child.path + "/turns").json()["turns"]] == [0]
    assert check(database) == []


def test_a_session_that_is_recorded_elsewhere_keeps_its_turns(api, database, where):
    said = say(database, where, "one")
    story.run_sql(database, "UPDATE sessions SET recorded = 1")
    assert refused(api.delete(where.turn(said))) == (409, "session_target_unavailable")


def test_the_session_stands_as_the_turn_before(api, database, where):
    answered(api, database, where)
    worse = say(database, where, "And?", kind="direct_reply")

    def fail(tx):
        variant.settle(tx, worse.turn, worse.variant, "failed", failure_reason="refused")
        tx.run(
            "UPDATE sessions SET status = 'error', outcome = 'failure', reason_code = 'refused',"
            " error_class = 'invalid_request'"
        )

    database.write(fail)
    assert api.delete(where.turn(worse)).status_code == 204
    session = api.get(f"{api.v3}/sessions/{where.conversation.public_id}").json()
    assert (session["status"], session["outcome"]) == ("exit", "success")
    assert session["error_class"] is None
    assert session["result_summary"] == "42."


def test_who_reads_may_not(api, database, where):
    said = say(database, where, "one")
    story.run_sql(database, "UPDATE conversations SET access_default = 'read'")
    assert refused(api.delete(where.turn(said), key="member:agent")) == (403, "not_authorized")
    answer = api.post(where.turn(said) + "/edit", json={}, key="member:agent")
    assert refused(answer) == (403, "not_authorized")


def test_a_concealed_newest_turn_is_deleted_by_who_may(api, database, where):
    said = say(database, where, "one")
    newest = say(database, where, "two")
    assert api.patch(where.turn(said), json={"turn": {"concealed": True}}).status_code == 200
    assert api.delete(where.turn(newest)).status_code == 204
    assert api.delete(where.turn(said)).status_code == 204
    assert api.get(where.path + "/turns").json()["turns"] == []
    assert check(database) == []
