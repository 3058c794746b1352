"""One record, three readings: a conversation of either family has all of them (design.md 1)."""

import pytest

from exports import exported
from oracles import harbor


@pytest.fixture
def conversation(api):
    workspace = api.post(
        f"{api.agent}/workspaces",
        json={"workspace": {"name": "Both families"}},
        headers={"Idempotency-Key": "w"},
    ).json()["workspace"]["public_id"]
    path = f"{api.agent}/workspaces/{workspace}/conversations"
    made = api.post(path, json={"conversation": {}}, headers={"Idempotency-Key": "c"})
    return f"{path}/{made.json()['conversation']['public_id']}"


def say(api, conversation: str, text: str, role: str = "user") -> None:
    sent = api.post(
        f"{conversation}/inputs",
        json={"input": {"kind": "message", "text": text, "role": role}},
        headers={"Idempotency-Key": text},
    )
    assert sent.status_code == 202, sent.text


def test_what_is_said_in_the_agent_api_is_in_the_feed_and_the_trajectory(api, conversation):
    say(api, conversation, "Is the kettle on?")
    say(api, conversation, "It is.", role="assistant")
    say(api, conversation, "House rules", role="system")
    say(api, conversation, "Thanks")
    session = conversation.rsplit("/", 1)[1]
    feed = api.get(f"{api.v3}/sessions/{session}/conversation").json()["items"]
    assert [(item["kind"], item["role"], item["content"]) for item in feed] == [
        ("prompt", "user", "Is the kettle on?"),
        ("message", "assistant", "It is."),
        ("message", "user", "Thanks"),
    ]
    document = exported(api.database, session)
    assert [(step["source"], step["message"]) for step in document["steps"]] == [
        ("user", "Is the kettle on?"),
        ("agent", "It is."),
        ("system", "House rules"),
        ("user", "Thanks"),
    ]
    assert document["steps"][1]["llm_call_count"] == 0
    assert harbor.validate(document) == []


def test_a_conversation_in_which_nothing_was_said_is_a_session_already(api, conversation):
    session = conversation.rsplit("/", 1)[1]
    assert api.get(f"{api.v3}/sessions/{session}").json()["status"] == "exit"
    assert api.get(f"{api.v3}/sessions/{session}/conversation").json()["items"] == []
    assert harbor.validate(exported(api.database, session)) == []


def test_a_concealed_message_leaves_every_reading(api, conversation):
    say(api, conversation, "A secret plan")
    say(api, conversation, "Never mind")
    turns = api.get(f"{conversation}/turns").json()["turns"]
    hidden = api.patch(
        f"{conversation}/turns/{turns[0]['public_id']}", json={"turn": {"concealed": True}}
    )
    assert hidden.status_code == 200, hidden.text
    session = conversation.rsplit("/", 1)[1]
    feed = api.get(f"{api.v3}/sessions/{session}/conversation").text
    trajectory = api.get(f"{api.v3}/sessions/{session}/trajectory").text
    assert "secret plan" not in feed + trajectory
    assert "Never mind" in feed
    assert "Never mind" in trajectory
