"""Which key opens what, in which order it is checked, and that refusals look alike."""

import pytest

from http_routes import every_route, fill
from stenograph.accounts import credential
from stenograph.clock import now
from stenograph.http import server

V3_401 = {"error": "missing_bearer", "message": "Authorization required"}
AGENT_401 = {"error": {"code": "unauthorized", "message": "Unauthorized"}}


def dead_keys(api):
    """Keys that were good once, and what never was one."""
    revoked, expired = api.key("api"), api.key("api", expires_days=1)
    revoked_member, expired_member = api.key("member"), api.key("member", expires_days=1)

    def kill(tx):
        for secret in (revoked, revoked_member):
            found = next(
                c for c in credential.listed(tx, api.org.owner) if secret.startswith(c.hint)
            )
            credential.revoke(tx, api.org.owner, found.public_id)
        tx.run("UPDATE credentials SET expires_at = :at WHERE expires_at > 0", at=now() - 1)

    api.database.write(kill)
    return [revoked, expired, revoked_member, expired_member, "reason_never", "sk-steno-v1-never"]


def test_every_route_refuses_who_brings_no_valid_key(api):
    dead = dead_keys(api)
    for family, prefix, route in every_route():
        if route.plane == "open":
            continue
        wrong_plane = ["api"] if family == "agent" else ["member", "executor"]
        if family == "agent":
            wrong_plane += ["executor"] if route.plane == "member" else ["member"]
        for key in ["", *wrong_plane, *dead]:
            answer = api.request(route.method, prefix + fill(route.path), key=key)
            assert answer.status_code == 401, (route.id, key, answer.text)
            if family == "v3":
                assert answer.json() == V3_401
            else:
                assert answer.json() == AGENT_401
                assert answer.headers["WWW-Authenticate"] == 'Bearer realm="stenograph"'


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", "bearer\t{key}", "{key}", "Bearer{key}"],
)
def test_other_forms_of_authorization_are_none(api, header):
    sent = {"Authorization": header.format(key=api.org.keys["api"])}
    assert api.get("/v3/self", key="", headers=sent).status_code == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Token", "token"])
def test_the_scheme_may_be_spelled_in_any_case(api, scheme):
    sent = {"Authorization": f"{scheme} {api.org.keys['api']}"}
    assert api.get("/v3/self", key="", headers=sent).status_code == 200


def test_a_cookie_or_a_query_is_no_credential(api):
    secret = api.org.keys["api"]
    for sent in ({"Cookie": f"token={secret}"}, {"X-Api-Key": secret}):
        assert api.get("/v3/self", key="", headers=sent).status_code == 401
    assert api.get(f"/v3/self?access_token={secret}", key="").status_code == 401
    assert "set-cookie" not in api.get("/v3/self").headers


def test_a_key_of_the_v3_family_tells_whose_it_is(api):
    for key, role in (("api", "owner"), ("api:admin", "admin"), ("api:member", "member")):
        found = api.get("/v3/self", key=key).json()
        assert found["role"] == role
        assert found["org_slug"] == "default"
        assert found["org_id"] == api.org.owner.organization_public_id


def test_revocation_takes_effect_at_once(api):
    secret = api.key("api")
    assert api.get("/v3/self", key=secret).status_code == 200

    def revoke(tx):
        newest = credential.listed(tx, api.org.owner)[-1]
        credential.revoke(tx, api.org.owner, newest.public_id)

    api.database.write(revoke)
    assert api.get("/v3/self", key=secret).status_code == 401


def routes_of_an_organization():
    prefix, routes = server.families()["v3"]
    return [(prefix, route) for route in routes if "{orgId}" in route.path]


def test_another_organization_is_not_there(api):
    # Before scope: a key without any gets the 404 too, and learns nothing.
    bare = api.key("api", wanted=["org:read"])
    for prefix, route in routes_of_an_organization():
        for key in ("api", bare):
            for name in ("elsewhere", api.org.stranger.organization_public_id, "no", "DEFAULT"):
                answer = api.request(route.method, prefix + fill(route.path, name), key=key)
                assert answer.status_code == 404, route.id
                assert answer.json() == {"error": "organization_not_found"}


def test_a_key_without_the_scope_is_told_which_one_is_lacking(api):
    bare = {scope: api.key("api", wanted=[scope]) for scope in ("org:read", "run")}
    for prefix, route in routes_of_an_organization():
        key = bare["org:read" if route.scope != "org:read" else "run"]
        for name in ("default", api.org.owner.organization_public_id):
            answer = api.request(route.method, prefix + fill(route.path, name), key=key)
            assert answer.status_code == 403, route.id
            assert answer.json() == {"error": "missing_scope", "required_scope": route.scope}
