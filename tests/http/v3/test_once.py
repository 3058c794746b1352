"""A v3 request with an `idempotency_key` acts once: on every route whose body has one."""

import msgspec
import pytest

from http_routes import every_row
from stenograph.http import server
from stenograph.ids import new_id

KEYED = {
    route.id: route
    for route in server.families()["v3"][1]
    if isinstance(route.body, type)
    and issubclass(route.body, msgspec.Struct)
    and "idempotency_key" in route.body.__struct_fields__
}
#: What each takes, what makes something else of it, and how a repeat is answered.
CASES = {
    "createSession": ({"prompt": "look"}, {"prompt": "listen"}, 200),
    "sendReasonMessage": ({"message": "look"}, {"message": "listen"}, 202),
    "sendSessionMessage": ({"message": "look"}, {"message": "listen"}, 202),
}


@pytest.fixture(scope="module")
def ids(world):
    reason = world.post(f"{world.v3}/reasons", json={"name": "Mine"}).json()["id"]
    assert world.post(f"{world.v3}/reasons/{reason}/messages", json={"message": "hi"}).is_success
    session = world.get(f"{world.v3}/reasons/{reason}").json()["session_id"]
    return {"orgId": "default", "reasonId": reason, "sessionId": session}


@pytest.fixture(params=CASES)
def name(request):
    return request.param


@pytest.fixture
def path(ids, name):
    return server.V3_PREFIX + KEYED[name].path.format(**ids)


@pytest.fixture
def body(name):
    return CASES[name][0] | {"idempotency_key": new_id()}


def test_the_table_names_every_route():
    assert KEYED.keys() == CASES.keys()


def test_the_same_again_acts_once_and_answers_alike(world, name, path, body):
    first = world.post(path, json=body)
    after = every_row(world.database)
    second = world.post(path, json=dict(reversed(body.items())))
    assert (first.status_code, second.status_code) == (KEYED[name].status, CASES[name][2])
    assert first.content == second.content
    other = world.post(path, json=body | CASES[name][1])
    assert other.status_code == 409
    assert other.json()["error"] == "idempotency_profile_conflict"
    assert every_row(world.database) == after


def test_several_at_once_act_once(world, name, path, body):
    answers = world.together(*[("POST", path, {"json": body})] * 4)
    assert len({it.content for it in answers}) == 1, answers[0].text
    expected = [CASES[name][2]] * 3 + [KEYED[name].status]
    assert sorted(it.status_code for it in answers) == expected


@pytest.mark.parametrize("key", ["", "k" * 256, 7])
def test_a_key_that_is_none_acts_not_at_all(world, path, body, key):
    before = every_row(world.database)
    answer = world.post(path, json=body | {"idempotency_key": key})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert every_row(world.database) == before


def test_what_is_refused_leaves_no_receipt(world, name, path, body):
    before = every_row(world.database)
    assert world.post(path, json=body | {"model": "two words"}).status_code == 400
    assert every_row(world.database) == before
    assert world.post(path, json=body).status_code == KEYED[name].status


def test_a_key_is_its_senders(world, name, path, body):
    """Who sees nothing of it finds nothing, be the key used or not."""
    before = world.post(path, json=body, key="api:member")
    made = world.post(path, json=body)
    assert made.status_code == KEYED[name].status
    after = world.post(path, json=body, key="api:admin")
    if name == "createSession":
        told = {it.json()["session_id"] for it in (before, made, after)}
        assert len(told) == 3
    else:
        assert (before.status_code, before.content) == (after.status_code, after.content)
        assert after.status_code == 404
