"""What a key may not see is not there, and what it may not drive stays: on every v3 route.

Of the things of others a key learns as much as of ids that nobody ever gave out.
"""

import pytest

from devices.hands import Hands
from http_routes import NOWHERE, every_row
from stenograph.accounts.scopes import SCOPES
from stenograph.http import server

ROUTES = [route for route in server.families()["v3"][1] if len(route.path_parameters) > 1]
#: A body that fits, for each route that takes one.
BODIES = {
    "updateReason": {"name": "Mine now"},
    "replaceReasonShares": {"people": []},
    "sendReasonMessage": {"message": "hello"},
    "sendSessionMessage": {"message": "hello"},
    "decideSessionApproval": {"decision": "approve"},
    "compactSession": {"compaction": {}},
    "recordSessionSteps": {"steps": []},
    "replaceSecret": {"value": "mine-now"},
    "updateMcpServer": {"name": "mine"},
    "putProviderCredential": {"api_key": "sk-mine"},
}
#: What a person with whom a Reason is shared may not do with its session, and why.
DRIVES = {
    "updateReason", "deleteReason", "replaceReasonShares", "sendReasonMessage",
    "sendSessionMessage", "cancelSession", "decideSessionApproval", "compactSession",
    "recordSessionSteps",
}  # fmt: skip


@pytest.fixture
def theirs(api, database, org, sealer):
    """Make one of everything in the organization `elsewhere`; returns its ids by parameter."""
    root = "/v3/organizations/elsewhere"

    def make(path, **body):
        answer = api.post(root + path, json=body, key="api:stranger")
        assert answer.status_code in (201, 202), answer.text
        return answer.json()

    reason = make("/reasons", name="Theirs")
    session = make(f"/reasons/{reason['id']}/messages", message="Theirs")
    make("/secrets", name="THEIRS", value="secret-of-theirs")
    mcp = make("/mcp-servers", name="t", transport="streamable_http", url="https://t.example/")
    child = make("/ephemeral-workspaces", reference="theirs", ttl_minutes=5)
    put = api.put(f"{root}/provider-credentials/openai", json={"api_key": "sk-theirs"},
                  key="api:stranger")  # fmt: skip
    assert put.status_code == 200
    device = Hands(database, org.stranger, sealer).worker().public_id
    found = api.get(f"{root}/reasons/{reason['id']}", key="api:stranger").json()
    assert session["kind"] == "prompt"
    return {
        "reasonId": reason["id"],
        "sessionId": found["session_id"],
        "mcpServerId": mcp["id"],
        "childOrgId": child["organization_id"],
        "deviceId": device,
        "name": "THEIRS",
        "provider": "openai",
        "taskKey": "r1",
    }


def ask(api, route, ids, key):
    path = server.V3_PREFIX + route.path
    for name, value in ({"orgId": "default"} | ids).items():
        path = path.replace("{" + name + "}", value)
    body = BODIES.get(route.id)
    return api.request(route.method, path, key=key, **({} if body is None else {"json": body}))


def unknown(route):
    """Ids that nobody ever gave out, for a route's path."""
    ids = dict.fromkeys(route.path_parameters, NOWHERE)
    return ids | {"orgId": "default", "name": "NEVER", "provider": "groq", "taskKey": "r1"}


def test_every_route_that_takes_a_body_has_one():
    assert {it.id for it in ROUTES if it.body is not None} == set(BODIES)


def test_what_belongs_to_another_organization(api, theirs):
    key = api.key("api", wanted=SCOPES)
    for route in ROUTES:
        if route.id == "putProviderCredential":
            continue  # it makes what it names
        before = every_row(api.database)
        answer, nothing = ask(api, route, theirs, key), ask(api, route, unknown(route), key)
        assert answer.status_code == nothing.status_code == 404, route.id
        assert answer.content == nothing.content, route.id
        assert dict(answer.headers) == dict(nothing.headers), route.id
        assert every_row(api.database) == before, route.id


def test_a_credential_of_the_same_name_is_ones_own(api, theirs):
    key = api.key("api", wanted=SCOPES)
    route = next(it for it in ROUTES if it.id == "putProviderCredential")
    assert ask(api, route, theirs, key).status_code == 200
    with api.database.read() as tx:
        assert tx.value("SELECT count(*) FROM provider_credentials") == 2


@pytest.fixture
def ours(api):
    """A Reason of the owner's with its session, as ids by parameter."""
    reason = api.post(f"{api.v3}/reasons", json={"name": "Mine"}).json()["id"]
    sent = api.post(f"{api.v3}/reasons/{reason}/messages", json={"message": "hello"})
    assert sent.status_code == 202
    session = api.get(f"{api.v3}/reasons/{reason}").json()["session_id"]
    return {"reasonId": reason, "sessionId": session, "taskKey": "r1", "name": "none.png"}


PERSONAL = [it for it in ROUTES if {"reasonId", "sessionId"} & set(it.path_parameters)]


@pytest.mark.parametrize("who", ["api:member", "api:admin"])
def test_what_is_somebody_elses_alone(api, ours, who):
    before = every_row(api.database)
    for route in PERSONAL:
        answer, nothing = ask(api, route, ours, who), ask(api, route, unknown(route), who)
        assert answer.status_code == nothing.status_code == 404, route.id
        assert answer.content == nothing.content, route.id
        assert dict(answer.headers) == dict(nothing.headers), route.id
    assert every_row(api.database) == before


def test_what_is_shared_is_read_as_its_owner_reads_it_and_not_driven(api, ours, org):
    shares = f"{api.v3}/reasons/{ours['reasonId']}/shares"
    assert api.put(shares, json={"people": [org.member.principal_public_id]}).status_code == 200
    owner = api.key(
        "api", wanted=[it for it in SCOPES if it != "sessions:debug"]
    )  # which shows more
    before = every_row(api.database)
    for route in PERSONAL:
        answer = ask(api, route, ours, "api:member")
        if route.id in DRIVES:
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden"), route.id
        else:
            own = ask(api, route, ours, owner)
            assert (answer.status_code, answer.content) == (own.status_code, own.content), route.id
            assert answer.status_code == (404 if route.id == "getSessionMedia" else 200), route.id
    assert every_row(api.database) == before
