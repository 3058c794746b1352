"""A request sent twice acts once: on every route of the Agent API that takes an idempotency key.

What a key and a receipt are in themselves: `tests/http/test_idempotency.py`.
"""

from typing import Any

import pytest

import story
from http_routes import every_row
from standing import ROUTES, ask, set_up
from stenograph.ids import new_id

NOT_FOUND = {"error": {"code": "not_found", "message": "Not found"}}
#: What makes something else of each request.
OTHER: dict[str, dict[str, Any]] = {
    "createWorkspace": {"name": "Other"},
    "createConversation": {"title": "Other"},
    "forkConversation": {"title": "Other"},
    "createInput": {"text": "other"},
    "regenerateTurn": {"model": {"model": "dev/small"}},
}
KEYED = [route for route in ROUTES.values() if route.idempotency]


@pytest.fixture(params=KEYED, ids=lambda route: route.id)
def keyed(request):
    return request.param


@pytest.fixture
def scene(world, keyed):
    """A scene of the test's own; where a turn is to be answered anew, with a newest that can be."""
    made = set_up(world.database, world.org)
    if keyed.id == "regenerateTurn":
        said = story.direct_reply(world.database, made.where)
        made.ids |= {"turn": said.turn.public_id, "variant": said.variant.public_id}
    return made


@pytest.fixture
def key():
    return new_id()


def other_body(scene, keyed):
    ((root, inner),) = scene.body(keyed).items()
    return {root: inner | OTHER[keyed.id]}


def test_the_table_names_every_route():
    assert {it.id for it in KEYED} == OTHER.keys()


def test_the_same_again_acts_once_and_answers_alike(world, scene, keyed, key):
    first = ask(world, scene, keyed, "member", key=key)
    after = every_row(world.database)
    second = ask(world, scene, keyed, "member", key=key)
    assert first.status_code == second.status_code == keyed.status, first.text
    assert first.content == second.content
    assert [it.headers.pop("Idempotency-Replayed") for it in (first, second)] == ["false", "true"]
    assert first.headers == second.headers
    other = ask(world, scene, keyed, "member", key=key, json=other_body(scene, keyed))
    assert other.status_code == 409
    assert other.json()["error"]["code"] == "idempotency_envelope_mismatch"
    assert every_row(world.database) == after


def test_several_at_once_act_once(world, scene, keyed, key):
    headers = {"Idempotency-Key": key}
    request = (keyed.method, scene.path(keyed), {"json": scene.body(keyed), "headers": headers})
    answers = world.together(*[request] * 4)
    assert {it.status_code for it in answers} == {keyed.status}, answers[0].text
    assert len({it.content for it in answers}) == 1
    replayed = sorted(it.headers["Idempotency-Replayed"] for it in answers)
    assert replayed == ["false", "true", "true", "true"]


def test_a_key_that_is_none_acts_not_at_all(world, scene, keyed):
    before = every_row(world.database)
    wrong = {"k" * 256: "parameter_invalid"}
    if keyed.idempotency == "required":
        wrong |= {"": "idempotency_key_required", "  ": "idempotency_key_required"}
        bare = world.request(keyed.method, scene.path(keyed), json=scene.body(keyed))
        code = bare.json()["error"]["code"]
        assert (bare.status_code, code) == (400, "idempotency_key_required")
    for sent, code in wrong.items():
        answer = ask(world, scene, keyed, "member", key=sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert every_row(world.database) == before


def test_what_is_refused_leaves_no_receipt(world, scene, keyed, key):
    def state(value):
        story.run_sql(world.database, "UPDATE workspaces SET state = :it", it=value)

    before = every_row(world.database)
    if "workspace" in keyed.path_parameters:
        state("archived")
        answer = ask(world, scene, keyed, "member", key=key)
        state("active")
    else:
        answer = ask(world, scene, keyed, "member", key=key, json={"workspace": {"name": ""}})
    assert answer.status_code in (409, 422), answer.text
    assert every_row(world.database) == before
    again = ask(world, scene, keyed, "member", key=key)
    assert again.status_code == keyed.status, again.text
    assert again.headers["Idempotency-Replayed"] == "false"


def test_an_answer_is_not_repeated_to_who_has_lost_access(world, scene, keyed, key):
    if "workspace" not in keyed.path_parameters:
        return  # who makes a workspace owns it
    if "conversation" in keyed.path_parameters:
        story.run_sql(world.database, "UPDATE conversation_access SET level = 'full'")
    answer = ask(world, scene, keyed, "member:agent", key=key)
    assert answer.status_code == keyed.status, answer.text
    if "conversation" in keyed.path_parameters:
        for level, status in (("read", 403), ("none", 404)):
            story.run_sql(world.database, f"UPDATE conversation_access SET level = '{level}'")
            assert ask(world, scene, keyed, "member:agent", key=key).status_code == status
    story.run_sql(world.database, "UPDATE workspaces SET access_mode = 'private'")
    answer = ask(world, scene, keyed, "member:agent", key=key)
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


@pytest.mark.parametrize("keyed", [it for it in KEYED if it.status == 201], ids=lambda it: it.id)
def test_what_was_made_and_is_deleted_is_not_repeated(world, scene, keyed, key):
    made = ask(world, scene, keyed, "member", key=key).json()
    ((noun, told),) = [it for it in made.items() if it[0] in ("workspace", "conversation")]
    lock = str(told.get("lock_version", 0))
    there = scene.at(**{noun: told["public_id"]}, lock_version=lock)
    deleted = ask(world, there, ROUTES[f"delete{noun.title()}"], "member")
    assert deleted.status_code == 204, deleted.text
    answer = ask(world, scene, keyed, "member", key=key)
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
