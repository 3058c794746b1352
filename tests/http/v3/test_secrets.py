"""Secrets over HTTP: set and never read back, in no answer of any route."""

import json

import pytest

from stenograph.http import server

VALUE = 'p@ss"wörd\\with/odd & characters'


@pytest.fixture
def secrets(api):
    return f"{api.v3}/secrets"


def test_a_secret_is_made_replaced_listed_and_deleted(api, secrets):
    made = api.post(secrets, json={"name": "TOKEN", "value": VALUE})
    assert made.status_code == 201
    assert set(made.json()) == {"id", "name", "created_at", "updated_at"}
    assert api.get(secrets).json() == {"items": [made.json()]}
    again = api.post(secrets, json={"name": "TOKEN", "value": VALUE})
    assert (again.status_code, again.json()["error"]) == (409, "secret_exists")
    other = api.put(f"{secrets}/TOKEN", json={"value": "another value"}).json()
    assert other["id"] == made.json()["id"]
    gone = api.delete(f"{secrets}/TOKEN")
    assert (gone.status_code, gone.json()) == (200, {"id": "TOKEN", "deleted": True})
    for answer in (api.delete(f"{secrets}/TOKEN"), api.put(f"{secrets}/TOKEN", json={"value": 1})):
        assert (answer.status_code, answer.json()) == (404, {"error": "secret_not_found"})
    assert api.get(secrets, key="api:stranger").status_code == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"name": "TOKEN"}, "invalid_request"),
        ({"name": "no name", "value": VALUE}, "invalid_secret_name"),
        ({"name": "TOKEN", "value": "abc"}, "secret_too_short"),
        ({"name": "TOKEN", "value": [VALUE]}, "invalid_request"),
        ({"name": "TOKEN", "value": "x" * 70_000}, "secret_too_large"),
    ],
)
def test_a_secret_that_cannot_be_kept_is_not_repeated_in_the_error(api, secrets, body, code):
    answer = api.post(secrets, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, code)
    assert VALUE not in answer.text
    assert "x" * 100 not in answer.text
    assert api.get(secrets).json() == {"items": []}


def test_reading_and_writing_are_scopes_of_their_own(api, secrets):
    reader, writer = api.key(wanted=["secrets:read"]), api.key(wanted=["secrets:write"])
    body = {"name": "TOKEN", "value": VALUE}
    assert api.post(secrets, json=body, key=reader).json()["required_scope"] == "secrets:write"
    assert api.post(secrets, json=body, key=writer).status_code == 201
    assert api.get(secrets, key=writer).json()["required_scope"] == "secrets:read"
    assert api.get(secrets, key=reader).status_code == 200
    assert api.delete(f"{secrets}/TOKEN", key=reader).status_code == 403


@pytest.mark.parametrize("value", [VALUE, "hunter2hunter2"])
def test_no_reading_of_a_run_holds_a_value(api, secrets, value):
    """Every GET route that is served, over a run that repeats its secret wherever it can."""
    api.post(secrets, json={"name": "TOKEN", "value": value})
    body = {
        "recorded": True,
        "prompt": f"use {value}",
        "title": f"about {value}",
        "tags": [f"tag {value}"],
        "session_policy": {f"k {value}": [value]},
        "agent": {"name": f"a {value}", "version": value, "extra": {value: value}},
        "secrets": ["TOKEN"],
    }
    made = api.post(f"{api.v3}/sessions", json=body)
    assert made.status_code == 201, made.text
    session_id = made.json()["session_id"]
    call = {"tool_call_id": "c1", "function_name": f"f {value}", "arguments": {value: value}}
    step = {
        "step_id": 2,
        "source": "agent",
        "message": f"said {value}",
        "reasoning_content": f"thought {value}",
        "model_name": f"m {value}",
        "tool_calls": [call],
        "observation": {"results": [{"source_call_id": "c1", "content": f"got {value}"}]},
        "extra": {value: value},
    }
    finish = {"result_summary": f"done {value}"}
    ended = api.post(
        f"{api.v3}/sessions/{session_id}/steps", json={"steps": [step], "finish": finish}
    )
    assert ended.status_code == 200, ended.text
    api.post(secrets.replace("secrets", "reasons"), json={"name": "r"})
    spellings = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    with api.database.read() as tx:
        row = tx.row(
            "SELECT w.public_id, t.public_id, v.public_id, r.public_id FROM runs r"
            " JOIN variants v ON v.id = r.variant_id JOIN turns t ON t.id = v.turn_id"
            " JOIN workspaces w ON w.id = r.workspace_id"
        )
    ids = dict(zip(("workspace", "turn", "variant", "run"), row, strict=True)) | {
        "orgId": "default", "sessionId": session_id, "conversation": session_id, "task_key": "r1",
    }  # fmt: skip
    read = 0
    answers = [made, ended]
    for prefix, routes in server.families().values():
        for route in routes:
            if route.method == "GET" and set(route.path_parameters) <= ids.keys():
                path = prefix + route.path
                for name in route.path_parameters:
                    path = path.replace("{" + name + "}", ids[name])
                answers.append(api.get(path, params={"query": "use"}))
                read += answers[-1].status_code == 200
    assert read >= 8
    for answer in answers:
        for spelling in spellings:
            assert spelling not in answer.text, answer.request.url


def test_a_value_is_in_no_file_of_the_database(api, secrets, settings):
    value = "correct horse battery staple"
    api.post(secrets, json={"name": "TOKEN", "value": value})
    api.post(f"{api.v3}/sessions", json={"recorded": True, "secrets": ["TOKEN"]})
    api.put(f"{secrets}/TOKEN", json={"value": value + " more"})
    files = [path for path in settings.data.rglob("*") if path.is_file()]
    assert files or api.database.dialect == "postgres"
    for path in files:
        assert value.encode() not in path.read_bytes()
    with api.database.read() as tx:
        for table in ("secrets", "session_secrets", "sessions", "events", "idempotency_receipts"):
            assert value not in repr(tx.rows(f"SELECT * FROM {table}"))
