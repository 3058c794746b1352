"""What a caller may not see does not exist, and what it may not change stays: on every route.

A hidden thing is answered with the bytes of an id that nobody ever gave out (agent-api.md 1.3).
"""

from dataclasses import replace
from typing import Any

import pytest

import story
from http_routes import NOWHERE, every_row
from standing import CASES, IN_CONVERSATION, IN_RUN, IN_TURN, IN_WORKSPACE, ROUTES, Scene, set_up
from stenograph.conversations import workspace

NOT_FOUND = {"error": {"code": "not_found", "message": "Not found"}}
#: Bodies that are wrong in more than one way: who sees nothing learns nothing from how.
WRONG = (b"", b"{", b"[]", b'{"nothing": "known"}')


@pytest.fixture
def scene(database, org) -> Scene:
    return set_up(database, org)


def ask(api, scene, route, key, path=None, **options):
    if "content" not in options and (body := scene.body(route)) is not None:
        options["json"] = body
    headers = {"Idempotency-Key": f"k {route.id}"} if route.idempotency else {}
    return api.request(route.method, path or scene.path(route), key=key, headers=headers, **options)


def hidden(api, scene, key, routes):
    """Assert that each route answers as it does for what never was, and changes nothing."""
    before = every_row(api.database)
    for route in routes:
        bodies: list[dict[str, Any]] = [{}, *({"content": it} for it in WRONG if route.body)]
        for body in bodies:
            answer = ask(api, scene, route, key, **body)
            unknown = ask(api, scene, route, key, scene.unknown(route), **body)
            assert answer.status_code == unknown.status_code, route.id
            assert answer.content == unknown.content, route.id
            assert dict(answer.headers) == dict(unknown.headers), route.id
            assert body or (answer.status_code, answer.json()) == (404, NOT_FOUND), route.id
    assert every_row(api.database) == before


def test_the_table_names_every_route():
    assert list(ROUTES.keys() ^ CASES.keys()) == []


def test_another_organization(api, scene):
    hidden(api, scene, "member:stranger", IN_WORKSPACE)


def test_a_private_workspace_of_others(api, database, scene):
    story.run_sql(database, "UPDATE workspaces SET access_mode = 'private'")
    hidden(api, scene, "member:agent", IN_WORKSPACE)


def test_a_deleted_workspace(api, database, scene):
    story.run_sql(database, "UPDATE workspaces SET deleted_at = 1")
    hidden(api, scene, "member", IN_WORKSPACE)


def test_level_none_by_default_and_by_name(api, scene):
    hidden(api, scene, "member:member", IN_CONVERSATION)
    hidden(api, scene, "member:admin", IN_CONVERSATION)


def test_a_deleted_conversation(api, database, scene):
    story.tombstone(database, scene.where)
    hidden(api, scene, "member", IN_CONVERSATION)


def test_another_workspace(api, database, org, scene):
    other = database.write(
        lambda tx: workspace.create(tx, org.owner, "Other", access_mode="account_wide")
    )
    scene.ids["workspace"] = other.public_id
    hidden(api, scene, "member", IN_CONVERSATION)


def test_what_lies_in_another_conversation(api, database, scene):
    scene.ids["conversation"] = story.another(database, scene.where).conversation.public_id
    inside = [it for it in IN_TURN if "run" not in it.path_parameters]
    hidden(api, scene, "member", inside)
    hidden(api, scene, "member", [ROUTES[name] for name in (
        "getAttachment", "getInputMaterialization", "editInput", "deleteInput",
    )])  # fmt: skip


def test_a_concealed_turn_takes_everything_beneath_it_along(api, scene):
    turn = scene.where.path + "/turns/" + scene.ids["turn"]
    assert api.patch(turn, json={"turn": {"concealed": True}}).status_code == 200
    hidden(api, scene, "member:agent", IN_TURN)
    hidden(api, scene, "member", [it for it in IN_TURN if not CASES[it.id].conceals])
    for route in IN_TURN:  # who may change it may bring it back, or delete it for good
        if CASES[route.id].conceals:
            assert ask(api, scene, route, "member").status_code in (200, 409)


def test_a_concealed_candidate_takes_its_run_along(api, database, scene):
    story.run_sql(database, "UPDATE variants SET deleted_at = 1 WHERE source = 'run'")
    hidden(api, scene, "member", IN_RUN)


def test_level_read_reads_as_full_does_and_writes_nothing(api, scene):
    before = every_row(api.database)
    for route in IN_CONVERSATION:
        answer = ask(api, scene, route, "member:agent")
        if CASES[route.id].writes:
            assert answer.status_code == 403, route.id
            assert answer.json()["error"]["code"] == "not_authorized"
            for body in WRONG if route.body else ():
                assert ask(api, scene, route, "member:agent", content=body).status_code in (
                    403,
                    400,
                )
        else:
            assert (answer.status_code == 200) == (CASES[route.id].code is None), route.id
            assert answer.content == ask(api, scene, route, "member").content, route.id
    assert every_row(api.database) == before


def test_a_workspace_is_changed_by_its_owner(api, scene):
    before = every_row(api.database)
    for name in ("updateWorkspace", "archiveWorkspace", "restoreWorkspace", "deleteWorkspace"):
        answer = ask(api, scene, ROUTES[name], "member:agent")
        assert answer.status_code == 403, name
        assert answer.json()["error"]["code"] == "not_workspace_owner"
    assert every_row(api.database) == before


def test_full_standing_reaches_every_route(api, scene):
    for name, case in CASES.items():
        route = ROUTES[name]
        if route.path == "/workspaces/{workspace}" or "{lock_version}" in str(case):
            found = api.get(f"{api.agent}/workspaces/{scene.ids['workspace']}").json()
            scene.ids["lock_version"] = str(found["workspace"]["lock_version"])
        answer = ask(api, scene, route, "member")
        if case.code is None:
            assert answer.status_code == route.status, (name, answer.text)
        else:
            assert answer.json()["error"]["code"] == case.code, name
            assert answer.status_code in (404, 409, 422), name


def test_lists_leave_out_what_is_closed(api, scene):
    listed = f"{api.agent}/workspaces/{scene.where.workspace.public_id}/conversations"
    for key, count in (("member", 1), ("member:agent", 1), ("member:member", 0)):
        assert len(api.get(listed, key=key).json()["conversations"]) == count


# --- once --------------------------------------------------------------------------------------

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


def send(api, scene, route, key="k", body=None, who="member"):
    headers = {} if key is None else {"Idempotency-Key": key}
    return api.request(
        route.method, scene.path(route), json=body or scene.body(route), headers=headers, key=who
    )


@pytest.fixture
def ready(api, scene, keyed):
    """The scene, with a newest turn that can be answered anew."""
    if keyed.id == "regenerateTurn":
        said = story.direct_reply(api.database, scene.where)
        scene.ids |= {"turn": said.turn.public_id, "variant": said.variant.public_id}
    return scene


def test_the_same_again_acts_once_and_answers_alike(api, ready, keyed):
    first = send(api, ready, keyed)
    after = every_row(api.database)
    second = send(api, ready, keyed)
    assert first.status_code == second.status_code == keyed.status, first.text
    assert first.json() == second.json()
    told = [it.headers["Idempotency-Replayed"] for it in (first, second)]
    assert told == ["false", "true"]
    assert every_row(api.database) == after


def test_several_at_once_act_once(api, ready, keyed):
    request = (keyed.method, ready.path(keyed),
               {"json": ready.body(keyed), "headers": {"Idempotency-Key": "k"}})  # fmt: skip
    answers = api.together(*[request] * 4)
    assert {it.status_code for it in answers} == {keyed.status}, answers[0].text
    told = sorted(it.headers["Idempotency-Replayed"] for it in answers)
    assert told == ["false", "true", "true", "true"]


def test_the_same_key_for_something_else_is_a_conflict(api, ready, keyed):
    send(api, ready, keyed)
    after = every_row(api.database)
    ((root, inner),) = ready.body(keyed).items()
    answer = send(api, ready, keyed, body={root: inner | OTHER[keyed.id]})
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "idempotency_envelope_mismatch"
    assert every_row(api.database) == after


@pytest.mark.parametrize(
    ("key", "code"),
    [(None, "idempotency_key_required"), ("", "idempotency_key_required"),
     ("k" * 256, "parameter_invalid")],
)  # fmt: skip
def test_a_key_that_is_none_acts_not_at_all(api, ready, keyed, key, code):
    if keyed.idempotency == "optional" and not key:
        return
    before = every_row(api.database)
    answer = send(api, ready, keyed, key)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert every_row(api.database) == before


def test_what_is_refused_leaves_no_receipt(api, database, ready, keyed):
    def state(value):
        story.run_sql(database, f"UPDATE workspaces SET state = '{value}'")

    if "workspace" not in keyed.path_parameters:
        answer = send(api, ready, keyed, body={"workspace": {"name": ""}})
    else:
        state("archived")
        answer = send(api, ready, keyed)
        state("active")
    assert answer.status_code in (409, 422), answer.text
    again = send(api, ready, keyed)
    assert again.status_code == keyed.status, again.text
    assert again.headers["Idempotency-Replayed"] == "false"


def test_an_answer_is_not_repeated_to_who_has_lost_access(api, database, ready, keyed):
    if "workspace" not in keyed.path_parameters:
        pytest.skip("who makes a workspace owns it")
    assert send(api, ready, keyed).status_code == keyed.status
    story.run_sql(database, "UPDATE workspaces SET deleted_at = 1")
    answer = send(api, ready, keyed)
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


# --- how often ---------------------------------------------------------------------------------


def test_every_route_has_a_budget(api, scene):
    """Whoever is over it is told so before anything else is looked at."""
    settings = replace(api.settings, agent_requests_per_minute=0, v3_requests_per_minute=0)
    spent = type(api)(api.database, api.org, settings, api.sealer)
    for route in ROUTES.values():
        if route.requests is not None:
            continue
        for path in (scene.path(route), scene.path(route, workspace=NOWHERE)):
            answer = ask(spent, scene, route, "member", path)
            assert answer.status_code == 429, route.id
            assert answer.json()["error"]["code"] == "rate_limited"
            assert answer.headers["Retry-After"] == "60"
    spent.close()
