"""What a caller may not see does not exist: the same bytes as for an id nobody ever gave out."""

from dataclasses import dataclass

import pytest

import story
from stenograph.conversations import conversation, workspace
from stenograph.conversations import input as inputs
from stenograph.http import server

NOWHERE = "00000000-0000-7000-8000-000000000000"
KEY = {"Idempotency-Key": "k"}

#: A body for each route that takes one.
BODIES = {
    "createConversation": {"conversation": {}},
    "createInput": {"input": {"kind": "message", "text": "x"}},
    "setTurnViewState": {"turn": {"visibility": "hidden"}},
    "setVariantViewState": {"variant": {"concealed": True}},
    "editTurn": {"edit": {"text": "x"}},
    "regenerateTurn": {"regeneration": {}},
}
#: What the state of the scene refuses even to those with full access.
REFUSED = {
    "setVariantViewState": "variant_active",
    "deleteTurn": "apex_only",
    "editTurn": "branch_required",
    "regenerateTurn": "branch_required",
    "cancelRun": "run_settled",
    "abandonRun": "run_settled",
    "retryRun": "run_settled",
    "retryRunTask": "run_settled",
}
#: What needs more than `read`.
WRITES = {"createInput", "setTurnViewState", "activateVariant", *REFUSED}
#: Written out, so that a route of another hand does not fall under a rule that it need not keep.
KNOWN = {
    "getWorkspace", "listWorkspacePrincipals", "listConversations", "listArchivedConversations",
    "createConversation", "listConversationChildren", "getConversation", "listConversationEvents",
    "listInputs", "createInput", "getInputMaterialization", "listTurns", "getTurn",
    "setTurnViewState", "listVariants", "setVariantViewState", "activateVariant",
    "getVariantRequest", "getVariantReasoning", "getRun", "getRunTranscript", "getRunTask",
    "getRunTaskRequest", "getRunGraph", "getRunPhases", *REFUSED,
}  # fmt: skip
ROUTES = [route for route in server.families()["agent"][1] if route.id in KNOWN]
#: Routes beneath a run lie in a conversation too, though their path does not say so.
IN_CONVERSATION = [r for r in ROUTES if {"conversation", "run"} & set(r.path_parameters)]
IN_TURN = [r for r in ROUTES if {"turn", "run"} & set(r.path_parameters)]
IN_RUN = [r for r in ROUTES if "run" in r.path_parameters]


@dataclass
class Scene:
    where: story.Place
    ids: dict[str, str]

    def path(self, route, **other):
        path = server.AGENT_PREFIX + route.path
        for name, value in (self.ids | other).items():
            path = path.replace("{" + name + "}", value)
        return path


@pytest.fixture
def scene(database, org):
    """A run-backed turn with two candidates, a newer message, and an input that became a turn."""
    where = story.place(
        database,
        org.owner,
        access_default="none",
        entries=[conversation.Entry("agent", "read"), conversation.Entry("admin", "none")],
    )
    said = story.branched(database, where)
    database.write(lambda tx: story.finish(tx, said))

    def send(tx):
        return inputs.accept(tx, org.owner, where.conversation, kind="message", text="hi")

    sent = database.write(send)
    assert said.run is not None
    return Scene(
        where,
        {
            "workspace": where.workspace.public_id,
            "conversation": where.conversation.public_id,
            "turn": said.turn.public_id,
            "variant": said.variant.public_id,
            "run": said.run.public_id,
            "task_key": "r1",
            "input": sent.public_id,
        },
    )


def ask(api, route, path, key):
    body = BODIES.get(route.id)
    return api.request(
        route.method, path, key=key, headers=KEY, **({} if body is None else {"json": body})
    )


def hidden(api, scene, key, routes):
    """Assert that each route answers as it does for ids that nobody ever gave out."""
    for route in routes:
        answer = ask(api, route, scene.path(route), key)
        deepest = route.path_parameters[-1].replace("task_key", "run")
        unknown = ask(api, route, scene.path(route, **{deepest: NOWHERE}), key)
        assert answer.status_code == unknown.status_code == 404, route.id
        assert answer.content == unknown.content, route.id
        assert dict(answer.headers) == dict(unknown.headers), route.id


def test_the_table_names_every_route_of_these_nouns():
    nouns = {"Workspaces", "Conversations", "Events", "Inputs", "Turns", "Variants", "Runs"}
    served = {r.id for r in server.families()["agent"][1] if r.tag in nouns}
    assert served - {"listWorkspaces", "createWorkspace"} >= KNOWN
    assert len(ROUTES) == len(KNOWN)


def test_another_plane_is_401(api, scene):
    for route in ROUTES:
        for key in ("executor", "api", "nonsense", ""):
            answer = ask(api, route, scene.path(route), key)
            assert answer.status_code == 401, route.id
            assert answer.json() == {"error": {"code": "unauthorized", "message": "Unauthorized"}}


def test_another_organization(api, scene):
    hidden(api, scene, "member:stranger", ROUTES)


def test_a_private_workspace_of_others(api, database, scene):
    story.run_sql(database, "UPDATE workspaces SET access_mode = 'private'")
    hidden(api, scene, "member:agent", ROUTES)


def test_level_none_by_default_and_by_name(api, scene):
    hidden(api, scene, "member:member", IN_CONVERSATION)
    hidden(api, scene, "member:admin", IN_CONVERSATION)


def test_a_tombstone(api, database, scene):
    story.tombstone(database, scene.where)
    hidden(api, scene, "member", IN_CONVERSATION)


def test_another_workspace(api, database, org, scene):
    other = database.write(
        lambda tx: workspace.create(tx, org.owner, "Other", access_mode="account_wide")
    )
    for route in IN_CONVERSATION:
        answer = ask(api, route, scene.path(route, workspace=other.public_id), "member")
        assert answer.status_code == 404, route.id
        assert answer.json() == {"error": {"code": "not_found", "message": "Not found"}}


def test_level_read_reads_and_writes_nothing(api, scene):
    for route in IN_CONVERSATION:
        answer = ask(api, route, scene.path(route), "member:agent")
        if route.id in WRITES:
            assert answer.status_code == 403, route.id
            assert answer.json()["error"]["code"] == "not_authorized"
        else:
            assert answer.status_code == 200, route.id


def test_full_standing_reaches_every_route(api, scene):
    for route in IN_CONVERSATION:
        answer = ask(api, route, scene.path(route), "member")
        if route.id in REFUSED:
            assert answer.status_code == 409, route.id
            assert answer.json()["error"]["code"] == REFUSED[route.id]
        else:
            assert answer.status_code in (200, 202), route.id


def test_a_concealed_turn_takes_everything_beneath_it_along(api, scene):
    turn = scene.where.path + "/turns/" + scene.ids["turn"]
    assert api.patch(turn, json={"turn": {"concealed": True}}).status_code == 200
    # Who may change it may bring it back, or delete it for good.
    changes = [route for route in IN_TURN if route.id in ("setTurnViewState", "deleteTurn")]
    hidden(api, scene, "member", [route for route in IN_TURN if route not in changes])
    hidden(api, scene, "member:agent", IN_TURN)
    answers = [ask(api, it, scene.path(it), "member").status_code for it in changes]
    assert sorted(answers) == [200, 409]


def test_a_concealed_variant_takes_its_run_along(api, database, scene):
    story.run_sql(database, "UPDATE variants SET deleted_at = 1 WHERE source = 'run'")
    hidden(api, scene, "member", IN_RUN)


def test_lists_leave_out_what_is_closed(api, scene):
    listed = f"/agent_api/v1/workspaces/{scene.where.workspace.public_id}/conversations"
    for key, count in (("member", 1), ("member:agent", 1), ("member:member", 0)):
        assert len(api.get(listed, key=key).json()["conversations"]) == count
