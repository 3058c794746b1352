"""What holds on every route there is: which key opens it, how often, and whose calls are whose."""

from dataclasses import replace

import pytest

from devices.hands import Hands
from http_routes import NOWHERE, every_route, every_row, fill
from plugged import shake_hands
from serving import Api
from standing import told
from stenograph.accounts import credential, first_start, principal
from stenograph.clock import now
from stenograph.http import server

V3_401 = {"error": "missing_bearer", "message": "Authorization required"}
AGENT_401 = {"error": {"code": "unauthorized", "message": "Unauthorized"}}
#: The plane of the credentials that open a route, by the plane that the route names.
OPENS = {"v3": "api", "platform": "api", "member": "member", "executor": "executor"}
#: What every executor route takes.
EXECUTOR = {
    "claimCall": {"claim": {"wait_ms": 0, "sessions": ["{session}"], "free": 0}},
    "extendLease": None,
    "reportProgress": {"progress": {"text": "half", "characters": 4}},
    "settleClaim": {"settlement": {"status": "completed", "output": "done"}},
}
#: The kinds of resource that have another budget than the settings say (agent-api.md 1.4).
BUDGETS = {"Enrollment": 60, "Claims": 600, "Progress": 10_000}


def plane_of(family, route):
    return "v3" if family == "v3" else route.plane


GUARDED = [it for it in every_route() if plane_of(it[0], it[2]) != "open"]


# --- which key ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dead(world):
    """Keys by plane that were good once: revoked, expired, of a person or organization gone."""

    def make(tx):
        owner = world.org.owner
        principal.add(tx, owner, "gone")
        made = {plane: [] for plane in ("api", "member", "executor")}
        for plane, secrets in made.items():
            revoked, secret = credential.create(tx, owner, plane)
            credential.revoke(tx, owner, revoked.public_id)
            secrets.append(secret)
            secrets.append(credential.create(tx, owner, plane, expires_days=1)[1])
            secrets.append(credential.create(tx, owner, plane, holder="gone")[1])
        closed = first_start.create(tx, "closed")
        for plane, secrets in made.items():
            secrets.append(closed[plane])
        tx.run("UPDATE credentials SET expires_at = :at WHERE expires_at > 0", at=now() - 1)
        tx.run("UPDATE principals SET deactivated_at = 1 WHERE handle = 'gone'")
        tx.run("UPDATE organizations SET retired_at = 1 WHERE slug = 'closed'")
        return made

    return world.database.write(make)


@pytest.mark.parametrize("plane", OPENS)
def test_every_key_that_opens_nothing_here_is_answered_as_none_is(world, dead, plane):
    opens = OPENS[plane]
    wrong = [it for it in dead if it != opens] + [f"{it}:stranger" for it in dead if it != opens]
    keys = [*wrong, *dead[opens], "reason_never", "sk-steno-v1-never", "ara_never"]
    before = every_row(world.database)
    for family, prefix, route in GUARDED:
        if plane_of(family, route) != plane:
            continue
        path = prefix + fill(route.path)
        refused = world.request(route.method, path, key="")
        assert refused.status_code == 401, route.id
        challenge = refused.headers.get("WWW-Authenticate")
        if family == "v3":
            assert (refused.json(), challenge) == (V3_401, None)
        else:
            assert (refused.json(), challenge) == (AGENT_401, 'Bearer realm="stenograph"')
        for key in keys:
            answer = world.request(route.method, path, key=key, content=b"{")
            assert told(answer) == told(refused), (route.id, key)
    assert every_row(world.database) == before


def test_the_same_before_the_handshake_of_a_socket(world, dead):
    status, body, headers = refused = shake_hands(world, "")
    http = world.get("/agent_api/v1/workspaces", key="")
    assert (status, body) == (http.status_code, http.content)
    assert headers["www-authenticate"] == http.headers["www-authenticate"]
    for key in ("api", "executor", *dead["member"], "sk-steno-v1-never"):
        assert shake_hands(world, key) == refused


# --- how often ---------------------------------------------------------------------------------


@pytest.fixture
def strict(world):
    """The API over the same people, with one request a minute for each."""
    settings = replace(world.settings, agent_requests_per_minute=1, v3_requests_per_minute=1)
    opened = Api(world.database, world.org, settings, world.sealer)
    opened.app.gate.windows._clock = lambda: 60.0
    yield opened
    opened.close()


def test_every_kind_of_resource_has_a_budget_of_its_own_and_v3_has_one_for_all(strict):
    """Over it, a route says so before it looks at anything else."""
    spent = set()
    for family, prefix, route in GUARDED:
        kind = "v3" if family == "v3" else route.tag
        if kind in BUDGETS:
            continue
        key = {"member": "member", "executor": "executor"}.get(plane_of(family, route), "api")
        answer = strict.request(route.method, prefix + fill(route.path), key=key)
        if kind not in spent:
            assert answer.status_code != 429, route.id
            spent.add(kind)
            answer = strict.request(route.method, prefix + fill(route.path), key=key)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "60"), route.id
        error = answer.json()["error"]
        assert error["type" if family == "v3" else "code"] == "rate_limited"


def test_other_budgets_are_those_of_the_contract():
    for _, _, route in every_route():
        assert route.requests == BUDGETS.get(route.tag), route.id


# --- whose calls -------------------------------------------------------------------------------


def test_the_table_names_every_executor_route():
    routes = {route.id for _, _, route in every_route() if route.plane == "executor"}
    assert routes - EXECUTOR.keys() == set()


def test_a_call_is_its_workers_alone(world):
    """Of the calls and sessions of others a worker learns as much as of those that never were."""
    hands, strangers = (
        Hands(world.database, caller, world.sealer)
        for caller in (world.org.owner, world.org.stranger)
    )
    enrolled = hands.enroll()
    worker = hands.heard(enrolled)
    session = hands.session(hands.on(worker))
    hands.call(session, "bash", command="env")
    real = hands.claimed(worker).claim_id, hands.public(session)
    others = []
    for who in (hands, strangers):
        other = who.enroll()
        who.heard(other)
        others.append(other.secret)
    routes = [route for _, _, route in every_route() if route.plane == "executor"]

    def ask(route, key, claim, session):
        body = EXECUTOR[route.id]
        if route.id == "claimCall":
            body = {"claim": body["claim"] | {"sessions": [session]}}
        path = server.AGENT_PREFIX + route.path.replace("{claim}", claim)
        return world.request(route.method, path, key=key, json=body)

    before = every_row(world.database)
    del before["devices"]  # when they were last heard of
    for route in routes:
        for key in (*others, "executor", "executor:stranger"):
            answer = ask(route, key, *real)
            unknown = ask(route, key, NOWHERE, NOWHERE)
            assert answer.status_code == unknown.status_code, route.id
            assert answer.text.replace(real[1], NOWHERE) == unknown.text, route.id
            if "claim" in route.path_parameters:
                assert answer.status_code == 409, route.id
    after = every_row(world.database)
    del after["devices"]
    assert after == before
    for route in routes:
        assert ask(route, enrolled.secret, *real).status_code == 200, route.id
