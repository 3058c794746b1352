"""Devices and machines over HTTP: what people see of workers, and how they send them away."""

import msgspec
import pytest

from devices.hands import Hands, enrollment, new_ticket
from stenograph.devices import device
from stenograph.devices.device import Grant, Permissions
from stenograph.devices.target import Target
from stenograph.engine.toolboxes.leases import LOST

ENROLLMENTS = "/agent_api/v1/executor/enrollments"


@pytest.fixture
def hands(database, org, sealer):
    return Hands(database, org.owner, sealer)


def enroll(api, key="api", **more):
    """Go the whole way over HTTP; returns the answer to the enrollment."""
    new = new_ticket(**more)
    made = api.post(f"{api.v3}/devices/enrollment-tickets", key=key, json=msgspec.to_builtins(new))
    assert made.status_code == 201, made.text
    sent = enrollment(new, made.json()["enrollment_ticket"])
    answer = api.post(ENROLLMENTS, key="", json={"enrollment": msgspec.to_builtins(sent)})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_ticket_says_what_it_is_for(api):
    body = msgspec.to_builtins(new_ticket(lifecycle="ephemeral"))
    made = api.post(f"{api.v3}/devices/enrollment-tickets", json=body)
    assert made.status_code == 201
    assert made.json().keys() == {"device_kind", "lifecycle", "enrollment_ticket", "expires_at"}
    assert made.json()["device_kind"] == "headless"
    assert made.json()["lifecycle"] == "ephemeral"
    assert made.json()["enrollment_ticket"].startswith("sk-steno-v1-ticket-")


@pytest.mark.parametrize(
    "wrong",
    [
        {"install_id": "me"},
        {"lifecycle": "eternal"},
        {"ttl_seconds": 0},
        {"ttl_seconds": 86_401},
        {"code_challenge": "x" * 42},
        {"code_challenge": "+" * 43},
        {"roots": []},
        {"roots": [{"path_fingerprint": "ab", "permissions": {}}]},
        {"roots": [{"path_fingerprint": "AB" * 32, "permissions": {}}]},
        {"roots": [{"path_fingerprint": "ab" * 32}]},
        {"roots": [{"path_fingerprint": "ab" * 32, "permissions": {}, "execution_mode": "vm"}]},
        {"machine": "No Queue"},
        {"machine": "-"},
        {"machine": "a" * 64},
        {"name": ""},
    ],
)
def test_a_ticket_that_makes_no_sense_is_refused(api, wrong):
    body = msgspec.to_builtins(new_ticket()) | wrong
    refused = api.post(f"{api.v3}/devices/enrollment-tickets", json=body)
    assert refused.status_code == 400
    assert refused.json()["error"] == "invalid_request"


def test_a_device_as_it_is_seen(api):
    may = Permissions(read=True, discover_environment=True)
    made = enroll(api, machine="builders", name="one", roots=[Grant("cd" * 32, may)])
    (listed,) = api.get(f"{api.v3}/devices").json()["devices"]
    found = api.get(f"{api.v3}/devices/{made['device']['id']}").json()["device"]
    assert found == listed
    assert found.pop("last_seen_at") == found.pop("created_at")
    assert found == {
        "id": made["device"]["id"],
        "name": "one",
        "online": True,
        "compatible": True,
        "compatibility_reason": None,
        "device_kind": "headless",
        "lifecycle": "persistent",
        "machine": "builders",
        "roots": made["device"]["roots"],
    }
    assert found["roots"][0]["permissions"] == {
        "read": True,
        "write": False,
        "execute": False,
        "discover_environment": True,
        "expose_mcp": False,
    }


def test_a_device_that_is_away_and_one_of_another_protocol(api, hands):
    worker = hands.worker()
    hands.enroll(version="9")
    hands.unseen(worker, 31)
    away, other = api.get(f"{api.v3}/devices").json()["devices"]
    assert (away["online"], away["compatible"]) == (False, True)
    assert other["compatible"] is False
    assert "version 9" in other["compatibility_reason"]


def test_a_device_is_deleted_with_its_secret_and_what_it_had_claimed(api, hands):
    made = enroll(api)
    claims = "/agent_api/v1/executor/claims"
    assert api.post(claims, key=made["secret"], json={"claim": {}}).status_code == 200
    (found,) = hands.write(lambda tx: device.listed(tx, hands.owner))
    hands.call(hands.session(hands.on(found)), "bash")
    taken = api.post(claims, key=made["secret"], json={"claim": {}}).json()["claim"]
    gone = api.delete(f"{api.v3}/devices/{found.public_id}")
    assert (gone.status_code, gone.json()) == (200, {"id": found.public_id, "deleted": True})
    assert hands.tasks() == {"bash": ("uncertain", LOST)}
    for path in ("", f"/{taken['claim_id']}/lease"):
        assert api.post(f"{claims}{path}", key=made["secret"], json={}).status_code == 401
    assert api.delete(f"{api.v3}/devices/{found.public_id}").status_code == 404
    assert api.get(f"{api.v3}/devices/{found.public_id}").status_code == 404


def test_a_device_is_deleted_by_its_owner_or_an_admin(api):
    made = enroll(api, key="api:admin")["device"]["id"]
    refused = api.delete(f"{api.v3}/devices/{made}", key="api:member")
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    assert api.delete(f"{api.v3}/devices/{made}", key="api").status_code == 200


def test_a_machine_is_told_with_who_is_free(api, hands):
    busy = hands.worker(machine="m")
    hands.worker(machine="m")
    for _ in range(2):
        hands.call(hands.session(Target(None, None, "m", None)), "read")
    hands.claimed(busy)
    assert api.get(f"{api.v3}/machines").json() == {
        "machines": [{"name": "m", "online": 2, "busy": 1, "free": 1, "waiting": 1}]
    }
