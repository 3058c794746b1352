"""Small documents, written out as values."""

CALL = {"tool_call_id": "c1", "function_name": "f", "arguments": {}}


def document(*steps, version: str = "ATIF-v1.7", **root) -> dict:
    """A document of these steps (default: one user step), numbered unless they say otherwise."""
    if not steps:
        steps = (user(),)
    numbered = [
        {"step_id": number, **step} if isinstance(step, dict) else step
        for number, step in enumerate(steps, 1)
    ]
    head = {"session_id": "s", "agent": {"name": "a", "version": "1"}}
    return {"schema_version": version, **head, "steps": numbered, **root}


def user(**fields) -> dict:
    return {"source": "user", "message": "go", **fields}


def agent(**fields) -> dict:
    return {"source": "agent", "message": "", **fields}


def system(**fields) -> dict:
    return {"source": "system", "message": "", **fields}


def results(*found, calls=(CALL,), **fields) -> dict:
    """An agent step with these results."""
    return agent(tool_calls=list(calls), observation={"results": list(found)}, **fields)


def image(path: str = "a.png", media_type: str = "image/png", **source) -> dict:
    return {"type": "image", "source": {"media_type": media_type, "path": path, **source}}


def audio(media_type: str = "audio/wav", path: str = "a.wav", **source) -> dict:
    return {"type": "audio", "source": {"media_type": media_type, "path": path, **source}}
