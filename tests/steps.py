"""Sessions that are recorded step by step over HTTP."""


def record(api, sessions, *steps, **more):
    """A recorded session with a prompt and these steps: its id."""
    body = {"recorded": True, "prompt": "Find it", **more}
    session_id = api.post(sessions, json=body).json()["session_id"]
    if steps:
        answer = api.post(f"{sessions}/{session_id}/steps", json={"steps": steps})
        assert answer.status_code == 200, answer.text
    return session_id


def call(step_id, output, arguments=None, **more):
    return {
        "step_id": step_id,
        "source": "agent",
        "message": "Looking.",
        "reasoning_content": "It may be here.",
        "model_name": "m",
        "tool_calls": [
            {"tool_call_id": "c1", "function_name": "grep", "arguments": arguments or {"q": "it"}}
        ],
        "observation": {"results": [{"source_call_id": "c1", "content": output}]},
        "metrics": {"prompt_tokens": 5, "completion_tokens": 2},
        **more,
    }
