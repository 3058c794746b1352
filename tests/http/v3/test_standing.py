"""What a key may not see is not there, and what it may not drive stays: on every v3 route.

Of the things of others a key learns as much as of ids that nobody ever gave out, however badly it
asks: the key is looked at first, then the organization, the scope, the thing, and last the
parameters (reason-api.md 1).
"""

import pytest

from devices.hands import Hands
from http_routes import NOWHERE, every_row
from standing import WRONG, misspelt, told
from stenograph.accounts.scopes import SCOPES
from stenograph.http import server
from stenograph.http.route import ANY_KEY

EVERY = {route.id: route for route in server.families()["v3"][1]}
IN_ORGANIZATION = [it for it in EVERY.values() if "orgId" in it.path_parameters]
ROUTES = [it for it in IN_ORGANIZATION if len(it.path_parameters) > 1]
PERSONAL = [it for it in ROUTES if {"reasonId", "sessionId"} & set(it.path_parameters)]
#: The scope that opens each route (reason-api.md 3).
OPENED_BY = {
    ANY_KEY: ["getSelf"],
    "deployment:read": ["getDeployment"],
    "sessions:read": [
        "listReasons", "getReason", "listReasonMessages", "listSessions", "getSession",
        "listSessionConversation", "listSessionApprovals", "listSessionEvents",
        "streamSessionEvents", "exportSessionTrajectory", "getSessionMedia",
    ],
    "run": [
        "createReason", "updateReason", "deleteReason", "replaceReasonShares", "sendReasonMessage",
        "createSession", "sendSessionMessage", "cancelSession", "decideSessionApproval",
        "compactSession", "importSession", "recordSessionSteps",
    ],
    "secrets:read": ["listSecrets"],
    "secrets:write": ["createSecret", "replaceSecret", "deleteSecret"],
    "mcp:read": ["listMcpServers", "getMcpServer"],
    "mcp:write": ["createMcpServer", "updateMcpServer", "deleteMcpServer", "checkMcpServer"],
    "org:read": ["listProviderCredentials"],
    "org:write": [
        "createEphemeralWorkspace", "retireEphemeralWorkspace", "putProviderCredential",
        "deleteProviderCredential",
    ],
    "devices:read": ["listDevices", "getDevice", "listMachines"],
    "devices:write": ["createEnrollmentTicket", "deleteDevice"],
}  # fmt: skip
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


def ask(api, route, ids, key, query="", **options):
    path = server.V3_PREFIX + route.path
    for name, value in ({"orgId": "default"} | ids).items():
        path = path.replace("{" + name + "}", value)
    if not options and route.id in BODIES:
        options["json"] = BODIES[route.id]
    return api.request(route.method, path + query, key=key, **options)


def badly(api, route, ids, key):
    """Call a route with all that it does not take."""
    for content in WRONG if route.body else ():
        yield ask(api, route, ids, key, content=content)
    for query in misspelt(route):
        yield ask(api, route, ids, key, "?" + query)


def unknown(route):
    """Ids that nobody ever gave out, for a route's path."""
    ids = dict.fromkeys(route.path_parameters, NOWHERE)
    return ids | {"orgId": "default", "name": "NEVER", "provider": "groq", "taskKey": "r1"}


def hidden(api, routes, ids, key):
    """Assert that each route answers as for what never was, and changes nothing."""
    before = every_row(api.database)
    for route in routes:
        nothing = ask(api, route, unknown(route), key)
        assert nothing.status_code == 404, route.id
        for answer in (ask(api, route, ids, key), *badly(api, route, ids, key)):
            assert told(answer) == told(nothing), (route.id, answer.request.url)
    assert every_row(api.database) == before


def test_the_tables_name_every_route():
    assert {it.id for it in ROUTES if it.body is not None} == set(BODIES)
    opened_by = {route: scope for scope, routes in OPENED_BY.items() for route in routes}
    assert {it.id: it.scope for it in EVERY.values()} == opened_by


# --- before the thing: organization and scope ---------------------------------------------------


def test_another_organization_is_not_there(world):
    # Before scope: a key without any gets the 404 too, and learns nothing.
    bare = world.key("api", wanted=["org:read"])
    elsewhere = ("elsewhere", world.org.stranger.organization_public_id)
    for route in IN_ORGANIZATION:
        for name in (*elsewhere, "no", "DEFAULT"):
            ids = unknown(route) | {"orgId": name}
            for key in ("api", bare):
                for answer in (ask(world, route, ids, key), *badly(world, route, ids, key)):
                    assert answer.status_code == 404, route.id
                    assert answer.json() == {"error": "organization_not_found"}


def test_a_key_without_the_scope_is_told_which_one_is_lacking(world):
    for scope in {it.scope for it in IN_ORGANIZATION}:
        key = world.key("api", wanted=[it for it in SCOPES if it != scope])
        lacking = {"error": "missing_scope", "required_scope": scope}
        for route in IN_ORGANIZATION:
            if route.scope != scope:
                continue
            for name in ("default", world.org.owner.organization_public_id):
                ids = unknown(route) | {"orgId": name}
                for answer in (ask(world, route, ids, key), *badly(world, route, ids, key)):
                    assert (answer.status_code, answer.json()) == (403, lacking), route.id


# --- the thing before the parameters ------------------------------------------------------------


@pytest.fixture(scope="module")
def all_scopes(world):
    return world.key("api", wanted=SCOPES)


@pytest.fixture(scope="module")
def theirs(world):
    """Make one of everything in the organization `elsewhere`; returns its ids by parameter."""
    root = "/v3/organizations/elsewhere"

    def make(path, **body):
        answer = world.post(root + path, json=body, key="api:stranger")
        assert answer.status_code in (201, 202), answer.text
        return answer.json()

    reason = make("/reasons", name="Theirs")
    session = make(f"/reasons/{reason['id']}/messages", message="Theirs")
    make("/secrets", name="THEIRS", value="secret-of-theirs")
    mcp = make("/mcp-servers", name="t", transport="streamable_http", url="https://t.example/")
    child = make("/ephemeral-workspaces", reference="theirs", ttl_minutes=5)
    put = world.put(f"{root}/provider-credentials/openai", json={"api_key": "sk-theirs"},
                    key="api:stranger")  # fmt: skip
    assert put.status_code == 200
    device = Hands(world.database, world.org.stranger, world.sealer).worker().public_id
    found = world.get(f"{root}/reasons/{reason['id']}", key="api:stranger").json()
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


def test_what_belongs_to_another_organization(world, theirs, all_scopes):
    put = EVERY["putProviderCredential"]  # which makes what it names
    hidden(world, [it for it in ROUTES if it != put], theirs, all_scopes)
    assert ask(world, put, theirs, all_scopes).status_code == 200
    with world.database.read() as tx:
        assert tx.value("SELECT count(*) FROM provider_credentials") == 2


def test_no_list_holds_what_is_theirs(world, theirs, all_scopes):
    lists = [it for it in IN_ORGANIZATION if it.method == "GET" and it not in ROUTES]
    named = [value for name, value in theirs.items() if name not in ("provider", "taskKey")]
    elsewhere = ""
    for route in lists:
        answer = ask(world, route, {}, all_scopes)
        assert answer.status_code == 200, route.id
        assert not [it for it in named if it in answer.text], route.id
        elsewhere += ask(world, route, {"orgId": "elsewhere"}, "api:stranger").text
    assert {name for name, value in theirs.items() if value in elsewhere} >= {
        "reasonId", "sessionId", "mcpServerId", "deviceId", "name",
    }  # fmt: skip


@pytest.fixture
def ours(world):
    """A Reason of the owner's with its session, as ids by parameter."""
    reason = world.post(f"{world.v3}/reasons", json={"name": "Mine"}).json()["id"]
    sent = world.post(f"{world.v3}/reasons/{reason}/messages", json={"message": "hello"})
    assert sent.status_code == 202
    session = world.get(f"{world.v3}/reasons/{reason}").json()["session_id"]
    return {"reasonId": reason, "sessionId": session, "taskKey": "r1", "name": "none.png"}


@pytest.mark.parametrize("who", ["api:member", "api:admin", "api:agent"])
def test_what_is_somebody_elses_alone(world, ours, who):
    hidden(world, PERSONAL, ours, who)


def test_what_was_deleted(world, ours):
    assert world.delete(f"{world.v3}/reasons/{ours['reasonId']}").status_code == 200
    hidden(world, [it for it in PERSONAL if "reasonId" in it.path_parameters], ours, "api")


def test_what_is_shared_is_read_as_its_owner_reads_it_and_not_driven(world, ours):
    shares = f"{world.v3}/reasons/{ours['reasonId']}/shares"
    member = world.org.member.principal_public_id
    assert world.put(shares, json={"people": [member]}).status_code == 200
    # Diagnostics show more.
    owner = world.key("api", wanted=[it for it in SCOPES if it != "sessions:debug"])

    def asked(route, key):
        return [ask(world, route, ours, key), *badly(world, route, ours, key)]

    before = every_row(world.database)
    for route in PERSONAL:
        answers = asked(route, "api:member")
        if route.scope == "run":
            refused = {(it.status_code, it.json()["error"]) for it in answers}
            assert refused == {(403, "forbidden")}, route.id
        else:
            assert [told(it) for it in answers] == [told(it) for it in asked(route, owner)]
            found = 404 if route.id == "getSessionMedia" else 200
            assert answers[0].status_code == found, route.id
    assert every_row(world.database) == before
