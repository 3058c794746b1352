"""What bodies and queries name: a hidden thing there, too, is one that never was.

Each request names, in turn, something that its caller may not see and an id that nobody ever gave
out. The answers are the same but for the id itself, and so is the record.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from devices.hands import Hands
from http_routes import NOWHERE, every_row
from standing import ROUTES, Scene, set_up
from stenograph.http import server
from stenograph.ids import new_id

V3 = {route.id: route for route in server.families()["v3"][1]}


@dataclass(frozen=True)
class Case:
    """A route, what kind of thing it names, and its body and query, with `{it}` for the id.

    `finds`: it does something else when the caller may see it.
    """

    route: str
    kind: str
    body: Any = None
    query: str = ""
    finds: bool = True


def entry(**who: str) -> dict[str, Any]:
    return {"access": {"default": "none", "entries": [{"level": "read", **who}]}}


def input_(**fields: Any) -> dict[str, Any]:
    return {"input": {"kind": "direct_reply", "text": "x", **fields}}


AGENT = [
    Case("createWorkspace", "person", {"workspace": {"name": "N", "members": ["{it}"]}}),
    Case("updateWorkspace", "person",
         {"workspace": {"lock_version": "{lock_version}", "members": ["{it}"]}}),
    Case("createConversation", "person", {"conversation": {"answering_user_public_id": "{it}"}}),
    Case("createConversation", "person", {"conversation": entry(user_public_id="{it}")}),
    Case("createConversation", "executor",
         {"conversation": {"default_runner_executor_public_id": "{it}"}}),
    Case("setConversationAccess", "person", entry(user_public_id="{it}")),
    Case("setConversationAccess", "person", entry(handle="{it}")),
    Case("setDefaultRunner", "executor", {"default_runner": {"executor_public_id": "{it}"}}),
    Case("forkConversation", "turn", {"fork": {"turn_public_id": "{it}"}}),
    Case("forkConversation", "variant",
         {"fork": {"turn_public_id": "{turn}", "variant_public_id": "{it}"}}),
    Case("createInput", "attachment", input_(attachments=[{"public_id": "{it}"}])),
    Case("createInput", "person", input_(answering_user_public_id="{it}")),
    Case("createInput", "run",
         input_(delivery_mode="steer", expected_steering_run_public_id="{it}"), finds=False),
    Case("createInput", "turn", input_(expected_tail_turn_public_id="{it}"), finds=False),
    Case("editInput", "attachment", {"input": {"attachments": [{"public_id": "{it}"}]}}),
    Case("reorderInputs", "waiting", {"inputs": ["{it}"]}),
    Case("readConversationHistory", "turn", query="?around_turn_public_id={it}"),
]  # fmt: skip
PROMPT = {"prompt": "look"}
V3_CASES = [
    Case("createSession", "reason", PROMPT | {"reason_id": "{it}"}),
    Case("createSession", "secret", PROMPT | {"secrets": ["{it}"]}),
    Case("createSession", "machine", PROMPT | {"target": {"kind": "machine", "name": "{it}"}}),
    Case("createSession", "device", PROMPT | {"target": {
        "kind": "headless", "device_id": "{it}", "root_id": NOWHERE,
        "workspace_mode": "project_root"}}),
    Case("createSession", "root", PROMPT | {"target": {
        "kind": "headless", "device_id": "{device}", "root_id": "{it}",
        "workspace_mode": "project_root"}}),
    Case("replaceReasonShares", "person", {"people": ["{it}"]}),
    Case("importSession", "secret", {}, query="?secrets={it}"),
    Case("listSessions", "reason", query="?reason_id={it}"),
]  # fmt: skip


def named(text: Any, it: str, ids: dict[str, str]) -> Any:
    match text:
        case dict():
            return {name: named(value, it, ids) for name, value in text.items()}
        case list():
            return [named(value, it, ids) for value in text]
        case str():
            if text == "{lock_version}":
                return int(ids["lock_version"])
            for name, value in ({"it": it} | ids).items():
                text = text.replace("{" + name + "}", value)
    return text


def alike(api, case, method, path, key, ids, hidden, seen=None) -> None:
    """Assert that a request is answered as if the hidden thing had never been; and otherwise for
    one of its kind that is `seen`."""

    def ask(it):
        sent = {} if case.body is None else {"json": named(case.body, it, ids)}
        headers = {"Idempotency-Key": new_id()}
        whole = named(path + case.query, it, ids)
        answer = api.request(method, whole, key=key, headers=headers, **sent)
        return answer.status_code, answer.text.replace(it, NOWHERE), answer.headers

    before = every_row(api.database)
    nothing = ask(NOWHERE)
    assert ask(hidden) == nothing
    assert nothing[0] >= 400 or method == "GET", nothing
    assert every_row(api.database) == before
    if seen is not None:
        assert ask(seen)[:2] != nothing[:2]


@pytest.fixture(scope="module")
def closed(world) -> Scene:
    """A scene that its owner has closed to `member`."""
    return set_up(world.database, world.org)


@pytest.fixture
def mine(world) -> Scene:
    """A scene of `member`'s own."""
    return set_up(world.database, world.org, world.org.member)


def belongings(api, caller, key, organization) -> dict[str, str]:
    """What an organization has, by kind."""
    hands = Hands(api.database, caller, api.sealer)
    machine, root = new_id(), f"/v3/organizations/{organization}"
    worker = hands.heard(hands.enroll(machine=machine))
    reason = api.post(f"{root}/reasons", json={"name": "R"}, key=key).json()
    secret = {"name": f"SECRET_{organization.upper()}", "value": "secret-of-it"}
    assert api.post(f"{root}/secrets", json=secret, key=key).status_code == 201
    return {
        "executor": worker.public_id,
        "device": worker.public_id,
        "root": worker.roots[0].public_id,
        "machine": machine,
        "reason": reason["id"],
        "secret": secret["name"],
    }


@pytest.fixture(scope="module")
def strange(world):
    person = world.org.stranger.principal_public_id
    theirs = belongings(world, world.org.stranger, "api:stranger", "elsewhere")
    return theirs | {"person": person}


@pytest.fixture(scope="module")
def own(world):
    ours = belongings(world, world.org.owner, "api", "default")
    return ours | {"person": world.org.agent.principal_public_id}


@pytest.mark.parametrize("case", AGENT, ids=lambda it: f"{it.route}-{it.kind}")
def test_in_the_agent_api(world, closed, mine, strange, own, case):
    route = ROUTES[case.route]
    path = mine.path(route).partition("?")[0]
    hidden = (strange | closed.ids)[case.kind]
    seen = (own | mine.ids)[case.kind] if case.finds else None
    alike(world, case, route.method, path, "member:member", mine.ids, hidden, seen)


@pytest.mark.parametrize("case", V3_CASES, ids=lambda it: f"{it.route}-{it.kind}")
def test_in_v3(world, strange, own, case):
    ids = {"orgId": "default", "reasonId": own["reason"], "device": own["device"]}
    path = named(server.V3_PREFIX + V3[case.route].path, "", ids)
    method, seen = V3[case.route].method, own[case.kind] if case.finds else None
    alike(world, case, method, path, "api", ids, strange[case.kind], seen)


def test_a_reason_of_somebody_elses(world, own):
    for case in V3_CASES:
        if case.kind == "reason":
            path = named(server.V3_PREFIX + V3[case.route].path, "", {"orgId": "default"})
            alike(world, case, V3[case.route].method, path, "api:member", {}, own["reason"])
