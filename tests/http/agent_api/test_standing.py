"""What a caller may not see does not exist, and what it may not change stays: on every route.

A hidden thing is answered with the bytes of an id that nobody ever gave out (agent-api.md 1.3),
however badly it is asked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

import story
from http_routes import NOWHERE, every_row
from plugged import subscribe
from standing import (
    CASES,
    IN_CONVERSATION,
    IN_RUN,
    IN_TURN,
    IN_WORKSPACE,
    ROUTES,
    ask,
    badly,
    set_up,
    told,
)
from stenograph.conversations import workspace
from stenograph.http.route import Route

NOT_FOUND = {"error": {"code": "not_found", "message": "Not found"}}


@pytest.fixture(scope="module")
def scene(world):
    return set_up(world.database, world.org)


@pytest.fixture(scope="module")
def unknown(world, scene):
    """What each route tells who sees everything there is, of an id that nobody ever gave out."""
    found = {}
    for route in IN_WORKSPACE:
        answer = ask(world, scene, route, "member", path=scene.unknown(route))
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND), route.id
        found[route.id] = told(answer)
    return found


@contextmanager
def unchanged(api) -> Iterator[None]:
    before = every_row(api.database)
    yield
    assert every_row(api.database) == before


def hidden(api, scene, unknown, who, routes) -> None:
    """Assert that each route answers as for what never was, and changes nothing."""
    with unchanged(api):
        for route in routes:
            for answer in (ask(api, scene, route, who), *badly(api, scene, route, who)):
                assert told(answer) == unknown[route.id], (route.id, answer.request.url)
        if ROUTES["getConversation"] in routes:
            named = scene.ids["workspace"], scene.ids["conversation"]
            answer = subscribe(api, who, *named)
            assert answer == subscribe(api, who, named[0], NOWHERE)
            assert answer == {"type": "reject_subscription"}


def test_the_table_names_every_route():
    assert list(ROUTES.keys() ^ CASES.keys()) == []


@dataclass(frozen=True)
class State:
    """Who sees nothing of which routes, while the record is as `sql` makes it; `undo` undoes it."""

    who: str
    routes: list[Route]
    sql: str = ""
    undo: str = ""


STATES = {
    "another organization": State("member:stranger", IN_WORKSPACE),
    "a private workspace of others": State(
        "member:agent",
        IN_WORKSPACE,
        "UPDATE workspaces SET access_mode = 'private'",
        "UPDATE workspaces SET access_mode = 'account_wide'",
    ),
    "a deleted workspace": State(
        "member",
        IN_WORKSPACE,
        "UPDATE workspaces SET deleted_at = 1",
        "UPDATE workspaces SET deleted_at = NULL",
    ),
    "level none by default": State("member:member", IN_CONVERSATION),
    "level none by name": State("member:admin", IN_CONVERSATION),
    "a deleted conversation": State(
        "member",
        IN_CONVERSATION,
        "UPDATE conversations SET deleted_at = 1",
        "UPDATE conversations SET deleted_at = NULL",
    ),
    "a concealed candidate": State(
        "member",
        IN_RUN,
        "UPDATE variants SET deleted_at = 1 WHERE source = 'run'",
        "UPDATE variants SET deleted_at = NULL",
    ),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_what_is_hidden_was_never_there(world, scene, unknown, state):
    if state.sql:
        story.run_sql(world.database, state.sql)
    hidden(world, scene, unknown, state.who, state.routes)
    if state.undo:
        story.run_sql(world.database, state.undo)


def test_another_workspace(world, scene, unknown):
    owner = world.org.owner
    other = world.database.write(
        lambda tx: workspace.create(tx, owner, "Other", access_mode="account_wide")
    )
    hidden(world, scene.at(workspace=other.public_id), unknown, "member", IN_CONVERSATION)


def test_what_lies_in_another_conversation(world, scene, unknown):
    other = story.another(world.database, scene.where).conversation.public_id
    inside = [it for it in IN_TURN if "run" not in it.path_parameters]
    inside += [
        ROUTES[name]
        for name in ("getAttachment", "getInputMaterialization", "editInput", "deleteInput")
    ]
    hidden(world, scene.at(conversation=other), unknown, "member", inside)


def test_a_concealed_turn_takes_everything_beneath_it_along(world, unknown):
    scene = set_up(world.database, world.org)
    turn = scene.where.path + "/turns/" + scene.ids["turn"]
    assert world.patch(turn, json={"turn": {"concealed": True}}).status_code == 200
    hidden(world, scene, unknown, "member:agent", IN_TURN)
    hidden(world, scene, unknown, "member", [it for it in IN_TURN if not CASES[it.id].conceals])
    for route in IN_TURN:  # who may change it may bring it back, or delete it for good
        if CASES[route.id].conceals:
            assert ask(world, scene, route, "member").status_code in (200, 409)


def test_level_read_reads_as_full_does_and_writes_nothing(world, scene):
    def asked(route, who):
        return [ask(world, scene, route, who), *badly(world, scene, route, who)]

    with unchanged(world):
        for route in IN_CONVERSATION:
            case, answers = CASES[route.id], asked(route, "member:agent")
            if case.writes:
                refused = {(it.status_code, it.json()["error"]["code"]) for it in answers}
                assert refused == {(403, "not_authorized")}, route.id
            else:
                assert (answers[0].status_code == 200) == (case.code is None), route.id
                full = asked(route, "member")
                assert [told(it) for it in answers] == [told(it) for it in full], route.id
        named = scene.ids["workspace"], scene.ids["conversation"]
        assert subscribe(world, "member:agent", *named) == {"type": "confirm_subscription"}


def test_a_workspace_is_changed_by_its_owner(world, scene):
    with unchanged(world):
        for name in ("updateWorkspace", "archiveWorkspace", "restoreWorkspace", "deleteWorkspace"):
            answer = ask(world, scene, ROUTES[name], "member:agent")
            assert answer.status_code == 403, name
            assert answer.json()["error"]["code"] == "not_workspace_owner"


def test_full_standing_reaches_every_route(world):
    scene = set_up(world.database, world.org)
    for name, case in CASES.items():
        route = ROUTES[name]
        if "{lock_version}" in str(case):
            found = world.get(f"{world.agent}/workspaces/{scene.ids['workspace']}").json()
            scene.ids["lock_version"] = str(found["workspace"]["lock_version"])
        if route.body is not None:
            answer = ask(world, scene, route, "member", content=b"{")
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request"), (
                name
            )
        answer = ask(world, scene, route, "member")
        if case.code is None:
            assert answer.status_code == route.status, (name, answer.text)
        else:
            assert answer.json()["error"]["code"] == case.code, name
            assert answer.status_code in (404, 409, 422), name


def test_lists_leave_out_what_is_closed(world):
    scene = set_up(world.database, world.org)
    listed = f"{world.agent}/workspaces/{scene.ids['workspace']}/conversations"
    for key, count in (("member", 1), ("member:agent", 1), ("member:member", 0)):
        assert len(world.get(listed, key=key).json()["conversations"]) == count
