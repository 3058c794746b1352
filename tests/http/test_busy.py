"""A session of an agent elsewhere whose turn is under way is busy, in both families."""

import pytest

from stenograph.retention.prune import prune


@pytest.fixture
def recorded(api):
    """A recorded session that was asked `q1`: (its path in v3, its path in the Agent API)."""
    body = {"prompt": "q1", "recorded": True}
    session_id = api.post(f"{api.v3}/sessions", json=body).json()["session_id"]
    listed = api.get(f"{api.agent}/workspaces").json()["workspaces"]
    (home,) = [one["public_id"] for one in listed if one["name"] == "Recorded sessions"]
    conversation = f"{api.agent}/workspaces/{home}/conversations/{session_id}"
    return f"{api.v3}/sessions/{session_id}", conversation


def send(api, session, *steps, **more):
    answer = api.post(f"{session}/steps", json={"steps": list(steps), **more})
    assert answer.status_code == 200, answer.text


def user(number, text):
    return {"step_id": number, "source": "user", "message": text}


def agent(number, text):
    return {"step_id": number, "source": "agent", "message": text}


def active(api, conversation):
    return api.get(conversation).json()["conversation"]["active_turn_public_id"]


def turns(api, conversation):
    return api.get(f"{conversation}/turns").json()["turns"]


def say(api, conversation, text):
    """Say something to whoever reads the conversation; returns where to see what it became."""
    sent = api.post(
        f"{conversation}/inputs",
        json={"input": {"kind": "message", "text": text}},
        headers={"Idempotency-Key": text},
    )
    return f"{conversation}/inputs/{sent.json()['input']['public_id']}/materialization"


def feed(api, session):
    return [item["content"] for item in api.get(f"{session}/conversation").json()["items"]]


def test_the_turn_under_way_is_the_active_one_until_it_ends(api, recorded):
    session, conversation = recorded
    (first,) = turns(api, conversation)
    assert active(api, conversation) == first["public_id"]
    send(api, session, agent(2, "a1"))
    assert active(api, conversation) == first["public_id"]
    send(api, session, user(3, "q2"), agent(4, "a2"), user(5, "q3"))
    *_, newest = turns(api, conversation)
    assert newest["active_variant"]["prompt_text"] == "q3"
    assert active(api, conversation) == newest["public_id"]
    assert api.get(session).json()["status"] == "running"
    send(api, session, agent(6, "a3"), finish={})
    assert active(api, conversation) is None
    assert api.get(session).json()["status"] == "exit"


def test_what_is_said_meanwhile_waits_for_the_end(api, recorded):
    session, conversation = recorded
    became = say(api, conversation, "Well done")
    assert api.get(became).status_code == 404
    send(api, session, agent(2, "a1"), user(3, "q2"))
    assert api.get(became).status_code == 404
    send(api, session, agent(4, "a2"), finish={})
    assert api.get(became).status_code == 200
    assert feed(api, session) == ["q1", "a1", "q2", "a2", "Well done"]
    document = api.get(f"{session}/trajectory").json()
    assert [step["message"] for step in document["steps"]] == feed(api, session)


def test_a_cancelled_session_is_not_busy(api, recorded):
    session, conversation = recorded
    became = say(api, conversation, "Never mind")
    api.post(f"{session}/cancel")
    assert active(api, conversation) is None
    assert api.get(became).status_code == 200
    assert feed(api, session)[-1] == "Never mind"


def test_an_agent_elsewhere_that_waits_keeps_no_details_of_older_turns(api, database, recorded):
    session, conversation = recorded
    send(api, session, agent(2, "a1"), user(3, "q2"))
    assert active(api, conversation) is not None
    assert [report.runs for report in prune(database, 0).reports] == [1, 0]
