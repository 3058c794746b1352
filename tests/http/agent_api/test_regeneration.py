"""Another answer to a turn: what is accepted, its receipt, and what is refused."""

import pytest

import story
from stenograph.conversations import variant
from stenograph.sessions import conversing

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def where(database, org):
    made = story.place(database, org.owner)
    database.write(lambda tx: conversing.begin(tx, org.owner, made.conversation.id))
    return made


def ask(api, where, said, wish=None, *, key="k", caller="member"):
    return api.post(
        where.turn(said) + "/regeneration",
        json={"regeneration": wish or {}},
        headers={"Idempotency-Key": key.encode()} if key else {},
        key=caller,
    )


def receipt(api, where, key, caller="member"):
    path = where.path + "/regeneration_receipt"
    return api.get(path, params={"idempotency_key": key}, key=caller)


def refused(answer):
    return answer.status_code, answer.json()["error"]["code"]


def test_the_old_answer_is_shown_while_another_is_made(api, database, where):
    said = story.rounds(database, where, ["a"])
    answer = ask(api, where, said)
    assert (answer.status_code, answer.headers["Idempotency-Replayed"]) == (202, "false")
    body = answer.json()
    assert list(body) == ["turn", "variant"]
    assert body["turn"] == {"public_id": said.turn.public_id, "status": "completed"}
    made = body["variant"]
    assert (made["source"], made["status"], made["active"]) == ("run", "pending", False)
    assert made["prompt_text"] == "Look around."
    found = api.get(where.turn(said)).json()["turn"]
    assert found["active_variant"]["public_id"] == said.variant.public_id
    assert found["running_variant"]["public_id"] == made["public_id"]
    event = api.get(f"{where.path}/events").json()["events"][-1]
    assert (event["type"], event["payload"]["source"]) == ("turn_variant", "run")


def test_a_key_that_was_used_for_another_turn_is_not_this_ones(api, database, where):
    said = story.rounds(database, where, ["a"])
    made = ask(api, where, said).json()["variant"]["public_id"]
    settle(database, said, made)
    newer = story.rounds(database, where, ["b"])
    assert refused(ask(api, where, newer)) == (409, "idempotency_envelope_mismatch")
    assert ask(api, where, newer, key="k2").status_code == 202


def settle(database, said, public_id):
    database.write(
        lambda tx: variant.settle(
            tx, said.turn, variant.find(tx, said.turn, public_id), "completed", content="new"
        )
    )


def test_a_receipt_is_read_by_its_key_as_things_stand_now(api, database, where):
    said = story.rounds(database, where, ["a"])
    accepted = ask(api, where, said).json()
    assert receipt(api, where, "k").json() == accepted
    settle(database, said, accepted["variant"]["public_id"])
    later = receipt(api, where, "k").json()
    assert (later["variant"]["status"], later["variant"]["content"]) == ("completed", "new")
    assert receipt(api, where, "other").status_code == 404
    # Another caller's request, another conversation's, one of another day.
    assert receipt(api, where, "k", "member:admin").status_code == 404
    assert receipt(api, story.another(database, where), "k").status_code == 404
    # What is concealed since is not told.
    conceal = {"variant": {"concealed": True}}
    made = f"{where.turn(said)}/variants/{accepted['variant']['public_id']}"
    assert api.patch(made, json=conceal).status_code == 200
    assert receipt(api, where, "k").status_code == 404
    api.patch(made, json={"variant": {"concealed": False}})
    story.run_sql(database, "UPDATE idempotency_receipts SET created_at = 1")
    assert receipt(api, where, "k").status_code == 404


def test_a_receipt_is_found_by_a_key_in_any_script(api, database, where):
    said = story.rounds(database, where, ["a"])
    for key in ("Schlüssel à", "\N{KEY}"):
        answer = ask(api, where, said, key=key)
        assert answer.status_code == 202
        found = receipt(api, where, key).json()["variant"]["public_id"]
        assert found == answer.json()["variant"]["public_id"]
        api.post(where.path + "/cancellation")
    assert receipt(api, where, "Schlüssel").status_code == 404


def test_a_receipt_needs_a_key(api, database, where):
    path = where.path + "/regeneration_receipt"
    assert refused(api.get(path)) == (400, "parameter_missing")
    assert refused(receipt(api, where, "x" * 256)) == (400, "parameter_invalid")
    gone = path.replace(where.conversation.public_id, NOWHERE)
    assert refused(api.get(gone)) == (404, "not_found")


def test_model_and_configuration_are_taken(api, database, where):
    said = story.rounds(database, where, ["a"])
    wish = {
        "model": {"model": "dev/thinker", "reasoning_effort": "high"},
        "configuration": {"temperature": 0.5, "max_tokens": 100},
    }
    made = ask(api, where, said, wish).json()["variant"]
    assert made["model"] == {"model_ref": "dev/thinker", "reasoning_effort": "high"}
    with database.read() as tx:
        rest = tx.value("SELECT rest FROM steps WHERE part = 'prompt' ORDER BY id DESC LIMIT 1")
    assert '"temperature":0.5' in rest


@pytest.mark.parametrize(
    ("wish", "wanted"),
    [
        ({"model": {"model": "nobody/knows"}}, (422, "validation_failed")),
        (
            {"model": {"model": "dev/small", "reasoning_effort": "low"}},
            (422, "unsupported_reasoning_effort"),
        ),
        ({"model": {}}, (400, "parameter_missing")),
        ({"model": {"model": 5}}, (400, "parameter_invalid")),
        ({"configuration": {"temperature": 9}}, (400, "parameter_invalid")),
        ({"configuration": {"mood": "good"}}, (400, "parameter_invalid")),
        ({"tool_names": []}, (400, "parameter_invalid")),
    ],
)
def test_a_wish_that_is_none(api, database, where, wish, wanted):
    said = story.rounds(database, where, ["a"])
    assert refused(ask(api, where, said, wish)) == wanted
    assert receipt(api, where, "k").status_code == 404  # a refused request leaves none


def test_a_direct_reply_is_made_anew_as_one(api, database, where):
    said = story.direct_reply(database, where)
    made = ask(api, where, said).json()["variant"]
    assert made["source"] == "inference"
    assert made["model"]["model_ref"] == "thinker"


def test_what_is_not_answered_anew(api, database, where):
    older = story.rounds(database, where, ["a"])
    said = story.message(database, where)
    assert refused(ask(api, where, said)) == (409, "unsupported_turn_type")
    assert refused(ask(api, where, older)) == (409, "branch_required")
    running = database.write(lambda tx: story.open_run(tx, where))
    assert refused(ask(api, where, older)) == (409, "conversation_busy")
    assert refused(ask(api, where, running)) == (409, "run_live")
    story.archive(database, where)
    assert refused(ask(api, where, running)) == (409, "conversation_archived")


def test_what_is_being_made_is_not_made_twice(api, database, where):
    said = story.rounds(database, where, ["a"])
    assert ask(api, where, said).status_code == 202
    assert refused(ask(api, where, said, key="k2")) == (409, "run_live")


@pytest.mark.parametrize("table", ["runs", "variants"])
def test_a_pruned_original_is_a_conflict_here(api, database, where, table):
    said = story.rounds(database, where, ["a"])
    story.run_sql(database, f"UPDATE {table} SET details_pruned_at = 1")
    assert refused(ask(api, where, said)) == (409, "execution_details_pruned")
    # An edit shows other words, whose original is gone all the same.
    edit = {"edit": {"text": "Mine."}}
    assert api.post(where.turn(said) + "/edit", json=edit).status_code == 200
    assert refused(ask(api, where, said, key="k2")) == (409, "execution_details_pruned")


def test_an_agent_elsewhere_is_not_asked(api, database, where):
    said = story.rounds(database, where, ["a"])
    story.run_sql(database, """UPDATE sessions SET agent = '{"name":"a","version":"1"}'""")
    assert refused(ask(api, where, said)) == (409, "session_target_unavailable")


def test_the_order_of_checks(api, database, where):
    """Who sees it, who may, the key, the body, the state."""
    said = story.rounds(database, where, ["a"])
    child = story.forked(database, where, story.message(database, where))
    story.run_sql(database, "UPDATE conversations SET access_default = 'read'")
    bad = {"model": {}}
    gone = story.Said(said.turn, said.variant)
    path = where.turn(gone).replace(said.turn.public_id, NOWHERE) + "/regeneration"
    assert refused(api.post(path, json={}, key="member:agent")) == (404, "not_found")
    assert refused(ask(api, where, said, bad, key=None, caller="member:agent")) == (
        403,
        "not_authorized",
    )
    assert refused(ask(api, child, said, bad, key=None)) == (403, "not_authorized")
    assert refused(ask(api, where, said, bad, key=None)) == (400, "idempotency_key_required")
    assert refused(ask(api, where, said, key="x" * 256)) == (400, "parameter_invalid")
    assert refused(ask(api, where, said, bad)) == (400, "parameter_missing")
    assert refused(ask(api, where, said)) == (409, "branch_required")
