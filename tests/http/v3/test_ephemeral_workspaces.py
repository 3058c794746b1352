"""Ephemeral workspaces: one child organization, one key, one session, and then no more."""

import pytest

from stenograph.clock import MINUTE, now
from stenograph.sessions import ephemeral

BODY = {"reference": "run 17", "ttl_minutes": 30}
RUN = {
    "prompt": "hello",
    "mode": "ephemeral",
    "workspace_ownership": "externally-managed",
    "idempotency_key": "k",
}


@pytest.fixture
def path(api):
    return f"{api.v3}/ephemeral-workspaces"


@pytest.fixture
def child(api, path):
    return api.post(path, json=BODY).json()


def start(api, child, **changes):
    body = {name: value for name, value in (RUN | changes).items() if value is not None}
    where = f"/v3/organizations/{child['organization_id']}/sessions"
    return api.post(where, key=child["api_key"], json=body)


def test_its_key_is_of_its_own_organization_and_lasts_as_long(api, path):
    before = now()
    answer = api.post(path, json=BODY)
    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == {
        "organization_id", "parent_organization_id", "reference", "api_key", "expires_at",
    }  # fmt: skip
    me = api.get("/v3/self", key=made["api_key"]).json()
    assert me["org_id"] == made["organization_id"] != made["parent_organization_id"]
    assert "org:write" not in me["scopes"]
    assert {"run", "sessions:read"} <= set(me["scopes"])
    assert made["parent_organization_id"] == api.get("/v3/self").json()["org_id"]
    assert api.get(f"{api.v3}/sessions", key=made["api_key"]).status_code == 404
    with api.database.read() as tx:
        expires_at = tx.value("SELECT expires_at FROM ephemeral_workspaces")
        key_expires_at = tx.value("SELECT expires_at FROM credentials ORDER BY id DESC LIMIT 1")
    assert 30 * MINUTE <= expires_at - before < 31 * MINUTE
    assert key_expires_at == expires_at


def test_the_same_request_again_answers_the_same_and_another_is_refused(api, path, child):
    again = api.post(path, json=BODY)
    assert (again.status_code, again.json()) == (200, child)
    other = api.post(path, json=BODY | {"ttl_minutes": 31})
    assert (other.status_code, other.json()["error"]) == (
        409, "ephemeral_workspace_reference_conflict",
    )  # fmt: skip
    assert start(api, child).status_code == 201
    # Once its session has begun, nobody is told the key any more.
    assert api.post(path, json=BODY).json() == child | {"api_key": None}


def test_it_admits_one_session(api, child):
    first = start(api, child)
    assert first.status_code == 201
    assert first.json()["mode"] == "ephemeral"
    assert start(api, child).json()["session_id"] == first.json()["session_id"]
    second = start(api, child, idempotency_key="another")
    assert (second.status_code, second.json()["error"]) == (409, "ephemeral_workspace_consumed")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"mode": None}, 400, "ephemeral_workspace_mode_required"),
        ({"idempotency_key": None}, 400, "ephemeral_workspace_idempotency_key_required"),
        ({"workspace_ownership": None}, 400, "ephemeral_requires_external_workspace"),
        ({"prompt": ""}, 400, "prompt_required"),
    ],
)
def test_a_session_that_it_does_not_admit_does_not_use_it_up(api, child, changes, status, code):
    refused = start(api, child, **changes)
    assert (refused.status_code, refused.json()["error"]) == (status, code)
    assert start(api, child).status_code == 201


def test_a_reason_there_begins_no_session(api, child):
    where = f"/v3/organizations/{child['organization_id']}/reasons"
    made = api.post(where, key=child["api_key"], json={"name": "r"}).json()
    sent = api.post(
        f"{where}/{made['id']}/messages", key=child["api_key"], json={"message": "hello"}
    )
    assert (sent.status_code, sent.json()["error"]) == (400, "ephemeral_workspace_mode_required")


def test_elsewhere_only_recorded_sessions_are_ephemeral(api):
    refused = api.post(f"{api.v3}/sessions", json=RUN)
    assert (refused.status_code, refused.json()["error"]) == (409, "ephemeral_workspace_required")
    recorded = api.post(f"{api.v3}/sessions", json=RUN | {"recorded": True})
    assert recorded.status_code == 201


def test_retiring_ends_key_and_session(api, path, child):
    session_id = start(api, child).json()["session_id"]
    retire = f"{path}/{child['organization_id']}/retire"
    answer = api.post(retire)
    assert answer.status_code == 200
    assert answer.json()["organization_id"] == child["organization_id"]
    assert api.post(retire).json() == answer.json()
    assert api.get("/v3/self", key=child["api_key"]).status_code == 401
    with api.database.read() as tx:
        status = tx.value(
            "SELECT s.status FROM sessions s JOIN conversations c ON c.id = s.conversation_id"
            " WHERE c.public_id = :id",
            id=session_id,
        )
    assert status == "cancelled"
    again = api.post(path, json=BODY)
    assert (again.status_code, again.json()["error"]) == (409, "ephemeral_workspace_retired")


def test_the_reaper_retires_those_whose_time_is_up(api, path, child):
    other = api.post(path, json=BODY | {"reference": "longer", "ttl_minutes": 60}).json()
    api.database.write(
        lambda tx: tx.run(
            "UPDATE ephemeral_workspaces SET expires_at = :at WHERE reference = 'run 17'", at=now()
        )
    )
    assert api.database.write(ephemeral.expire) == 1
    assert api.database.write(ephemeral.expire) == 0
    assert api.get("/v3/self", key=child["api_key"]).status_code == 401
    assert api.get("/v3/self", key=other["api_key"]).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"reference": "", "ttl_minutes": 1}, "invalid_reference"),
        ({"reference": "a\nb", "ttl_minutes": 1}, "invalid_reference"),
        ({"reference": "a", "ttl_minutes": 0}, "invalid_ttl"),
        ({"reference": "a", "ttl_minutes": 721}, "invalid_ttl"),
        ({"reference": "a"}, "invalid_request"),
    ],
)
def test_what_is_asked_badly_makes_nothing(api, path, body, code):
    answer = api.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, code)
    with api.database.read() as tx:
        assert tx.value("SELECT count(*) FROM ephemeral_workspaces") == 0


def test_as_many_as_may_live_at_once(api, path, monkeypatch):
    monkeypatch.setattr(ephemeral, "LIMIT", 2)
    made = [api.post(path, json=BODY | {"reference": str(n)}).json() for n in range(2)]
    full = api.post(path, json=BODY)
    assert (full.status_code, full.json()["error"]) == (409, "ephemeral_workspace_limit_reached")
    api.post(f"{path}/{made[0]['organization_id']}/retire")
    assert api.post(path, json=BODY).status_code == 201


def test_only_owners_and_admins_of_the_parent_may(api, path, child):
    retire = f"{path}/{child['organization_id']}/retire"
    for key in ("api:member", child["api_key"]):
        where = path if key == "api:member" else path.replace("default", child["organization_id"])
        refused = api.post(where, key=key, json=BODY | {"reference": "x"})
        assert refused.status_code == 403
    assert api.post(retire, key="api:member").status_code == 403
    elsewhere = retire.replace("/default/", "/elsewhere/")
    assert api.post(elsewhere, key="api:stranger").status_code == 404
    assert api.post(path, key="api:admin", json=BODY | {"reference": "y"}).status_code == 201
