"""Messages that arrive while an agent elsewhere works belong to its turn, however many they are."""

import json

import pytest


@pytest.mark.parametrize("at_once", [True, False])
def test_a_second_steer_opens_no_turn(api, at_once):
    made = api.post(
        f"{api.v3}/sessions", json={"recorded": True, "agent": {"name": "a", "version": "1"}}
    )
    session = made.json()["session_id"]
    call = {"tool_call_id": "c", "function_name": "f", "arguments": {}}
    result = {"source_call_id": "c", "content": "x"}
    steps = [
        {"source": "user", "message": "Go"},
        {
            "source": "agent",
            "message": "",
            "tool_calls": [call],
            "observation": {"results": [result]},
        },
        {"source": "user", "message": "Faster"},
        {"source": "user", "message": "And quieter"},
        {"source": "agent", "message": "Done"},
    ]
    numbered = [{"step_id": n, **step} for n, step in enumerate(steps, 1)]
    for part in [numbered] if at_once else [[step] for step in numbered]:
        sent = api.post(f"{api.v3}/sessions/{session}/steps", content=json.dumps({"steps": part}))
        assert sent.status_code == 200, sent.text
    api.post(f"{api.v3}/sessions/{session}/steps", content='{"finish": {}}')
    feed = api.get(f"{api.v3}/sessions/{session}/conversation").json()["items"]
    assert [(item["kind"], item["content"]) for item in feed] == [
        ("prompt", "Go"),
        ("message", "Faster"),
        ("message", "And quieter"),
        ("reply", "Done"),
    ]
