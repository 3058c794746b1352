"""A turn that is answered anew while newer ones come: nothing is told twice."""

import pytest

import story
from model import answering
from serving import Api
from stenograph.retention import integrity
from stenograph.retention.prune import prune
from stenograph.sessions import conversing


@pytest.fixture
def where(database, org):
    made = story.place(database, org.owner)
    database.write(lambda tx: conversing.begin(tx, org.owner, made.conversation.id))
    return made


def post(api, path, **body):
    answer = api.post(path, json=body, headers={"Idempotency-Key": f"{path[-12:]}{body}"})
    assert answer.status_code < 300, answer.text
    return answer.json()


def say(api, where, text, kind="message", **more):
    post(api, f"{where.path}/inputs", input={"kind": kind, "text": text, **more})


def answered_anew(api, database, where):
    """Ask a question that a run answers at once, and for another answer; returns its candidate."""
    say(api, where, "Why?", "direct_reply", tool_names=[])
    (asked,) = api.get(f"{where.path}/turns").json()["turns"]
    first = asked["active_variant"]["public_id"]
    answering.hear(database, first, answering.ask(database, first), "Because.", "", 0)
    path = f"{where.path}/turns/{asked['public_id']}/regeneration"
    return post(api, path, regeneration={})["variant"]["public_id"]


def messages(api, where):
    path = f"{Api.v3}/sessions/{where.conversation.public_id}/conversation"
    return [it["content"] for it in api.get(path).json()["items"]]


def test_messages_that_come_meanwhile_are_in_the_feed_once(api, database, where):
    candidate = answered_anew(api, database, where)
    say(api, where, "one")
    asked = answering.ask(database, candidate)
    say(api, where, "two")
    answering.hear(database, candidate, asked, "For this.", "", 0)
    say(api, where, "three")
    assert messages(api, where) == ["Why?", "one", "two", "For this.", "three"]


def test_of_a_pruned_answer_given_meanwhile_one_step_is_left(api, database, where):
    candidate = answered_anew(api, database, where)
    answering.hear(database, candidate, answering.ask(database, candidate), "I look.", "", 1)
    say(api, where, "Go on")
    answering.call(database, candidate)
    answering.hear(database, candidate, answering.ask(database, candidate), "For this.", "", 0)
    prune(database, 0, rewrite=False)
    path = f"{Api.v3}/sessions/{where.conversation.public_id}/trajectory"
    document = api.get(path).json()
    told = [(step["source"], step["message"]) for step in document["steps"]]
    assert told == [("user", "Why?"), ("user", "Go on"), ("agent", "For this.")]
    assert document["extra"]["fidelity"]["pruned_turns"] == 1


def test_a_concealed_turn_that_is_answered_anew_is_stopped(api, database, where):
    answered_anew(api, database, where)
    say(api, where, "one")
    turn = api.get(f"{where.path}/turns").json()["turns"][0]["public_id"]
    api.patch(f"{where.path}/turns/{turn}", json={"turn": {"concealed": True}})
    post(api, f"{where.path}/cancellation")
    api.patch(f"{where.path}/turns/{turn}", json={"turn": {"concealed": False}})
    deck = api.get(f"{where.path}/turns/{turn}/variants").json()["variants"]
    assert [it["status"] for it in deck] == ["completed", "canceled"]


def test_an_answer_that_comes_after_the_prune_is_billed_and_names_nothing(api, database, where):
    say(api, where, "Why?", "direct_reply", tool_names=[])
    (asked,) = api.get(f"{where.path}/turns").json()["turns"]
    candidate = asked["active_variant"]["public_id"]
    call = answering.ask(database, candidate)
    post(api, f"{where.path}/cancellation")
    prune(database, 0, rewrite=False)
    answering.hear(database, candidate, call, "Too late.", "", 0)
    usage = api.get(where.path).json()["conversation"]["usage_summary"]
    assert usage["request_count"] == 1
    assert integrity.check(database) == []


def test_a_session_runs_until_nothing_is_under_way(api, database, where):
    anew = answered_anew(api, database, where)
    say(api, where, "And then?", "direct_reply", tool_names=[])
    *_, asked = api.get(f"{where.path}/turns").json()["turns"]
    path = f"{Api.v3}/sessions/{where.conversation.public_id}"
    answering.hear(database, anew, answering.ask(database, anew), "For this.", "", 0)
    assert api.get(path).json()["status"] == "running"
    assert integrity.check(database) == []
    newest = asked["active_variant"]["public_id"]
    answering.miss(database, newest, call := answering.ask(database, newest))
    answering.give_up(database, newest, call, late=False)
    ended = api.get(path).json()
    assert (ended["status"], ended["outcome"]) == ("error", "failure")
