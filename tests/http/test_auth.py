"""How a key is sent, whose it is, and that it may be withdrawn. Which routes it opens:
`test_every_route.py`."""

import pytest

from stenograph.accounts import credential


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
