"""An organization's own keys for models over HTTP: set and never read back."""

from dataclasses import replace

import pytest

from serving import Api

KEY = "sk-hunter2-hunter2"


@pytest.fixture
def keys(api):
    return f"{api.v3}/provider-credentials"


def test_a_key_is_set_replaced_listed_and_deleted(api, keys):
    body = {"api_key": KEY, "base_url": "https://gateway.example/v1"}
    made = api.put(f"{keys}/openai", json=body)
    assert made.status_code == 200, made.text
    shown = made.json()
    assert shown | {"created_at": "", "updated_at": ""} == {
        "provider": "openai", "base_url": "https://gateway.example/v1", "aws_region": None,
        "secrets": ["api_key"], "created_at": "", "updated_at": "",
    }  # fmt: skip
    assert api.get(keys).json() == {"items": [shown]}
    again = api.put(f"{keys}/openai", json={"api_key": "sk-other"}).json()
    assert (again["base_url"], again["created_at"]) == (None, shown["created_at"])
    assert KEY not in made.text + api.get(keys).text
    gone = api.delete(f"{keys}/openai")
    assert (gone.status_code, gone.json()) == (200, {"id": "openai", "deleted": True})
    missing = api.delete(f"{keys}/openai")
    assert (missing.status_code, missing.json()) == (
        404,
        {"error": "provider_credential_not_found"},
    )


def test_aws_has_two_kinds_of_keys(api, keys):
    signed = {"aws_access_key_id": "AKIA", "aws_secret_access_key": KEY, "aws_region": "eu-west-1"}
    made = api.put(f"{keys}/bedrock", json=signed).json()
    assert made["secrets"] == ["aws_access_key_id", "aws_secret_access_key"]
    assert made["aws_region"] == "eu-west-1"
    assert api.put(f"{keys}/bedrock", json={"api_key": KEY}).json()["secrets"] == ["api_key"]
    half = api.put(f"{keys}/bedrock", json={"aws_access_key_id": "AKIA"})
    assert (half.status_code, half.json()["error"]) == (400, "invalid_provider_credential")


def test_only_providers_there_are_have_keys(api, keys, database, org, settings, sealer):
    for provider in ("dev", "nobody", "shed"):
        answer = api.put(f"{keys}/{provider}", json={"api_key": KEY})
        assert (answer.status_code, answer.json()) == (404, {"error": "provider_not_found"})
    with_shed = Api(database, org, replace(settings, endpoints="shed=http://shed.example"), sealer)
    try:
        assert with_shed.put(f"{keys}/shed", json={"api_key": KEY}).status_code == 200
    finally:
        with_shed.close()
    # A server of one's own needs no key, but an address.
    own = api.put(f"{keys}/ollama", json={"base_url": "http://ollama.example/v1"})
    assert (own.status_code, own.json()["secrets"]) == (200, [])


def test_members_read_and_admins_write(api, keys):
    refused = api.put(f"{keys}/openai", json={"api_key": KEY}, key="api:member")
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    assert api.put(f"{keys}/openai", json={"api_key": KEY}, key="api:admin").status_code == 200
    assert len(api.get(keys, key="api:member").json()["items"]) == 1
    assert api.delete(f"{keys}/openai", key="api:member").status_code == 403
    theirs = "/v3/organizations/elsewhere/provider-credentials"
    assert api.get(theirs, key="api:stranger").json() == {"items": []}
    assert api.delete(f"{theirs}/openai", key="api:stranger").status_code == 404


def test_reading_and_writing_are_scopes_of_their_own(api, keys):
    reader, writer = api.key(wanted=["org:read"]), api.key(wanted=["org:write"])
    body = {"api_key": KEY}
    assert api.put(f"{keys}/openai", json=body, key=reader).json()["required_scope"] == "org:write"
    assert api.put(f"{keys}/openai", json=body, key=writer).status_code == 200
    assert api.get(keys, key=writer).json()["required_scope"] == "org:read"
    assert api.get(keys, key=reader).status_code == 200
    assert api.delete(f"{keys}/openai", key=reader).status_code == 403


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_provider_credential"),
        ({"api_key": ""}, "invalid_provider_credential"),
        ({"base_url": "https://gateway.example"}, "invalid_provider_credential"),
        ({"api_key": f"{KEY} and more"}, "invalid_provider_credential"),
        ({"api_key": KEY, "base_url": f"https://{KEY}@x.example"}, "invalid_provider_credential"),
        ({"api_key": [KEY]}, "invalid_request"),
    ],
)
def test_what_cannot_be_a_key_is_not_repeated_in_the_error(api, keys, body, code):
    answer = api.put(f"{keys}/openai", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, code)
    assert KEY not in answer.text
    assert api.get(keys).json() == {"items": []}


def test_no_value_is_in_a_file(api, keys, settings):
    api.put(f"{keys}/openai", json={"api_key": KEY})
    with api.database.read() as tx:
        assert KEY not in repr(tx.rows("SELECT * FROM provider_credentials"))
    files = [path for path in settings.data.rglob("*") if path.is_file()]
    assert all(KEY.encode() not in path.read_bytes() for path in files)
