"""Every member route of the Agent API with what it takes, over a scene in which each finds all it
names. A route that is not in the table fails the walk (`test_standing.py`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

import story
from http_routes import NOWHERE
from people import Org
from serving import Api
from stenograph.accounts.access import Caller
from stenograph.clock import DAY, now
from stenograph.conversations import access, attachment, conversation
from stenograph.conversations import input as inputs
from stenograph.conversations.wishes import Wishes
from stenograph.http import server
from stenograph.http.route import Route
from stenograph.storage.database import Database, Tx


@dataclass(frozen=True)
class Case:
    """How a route is called: a JSON body and a query that fit the scene.

    `writes`: it needs the level `full`. `code`: what the state of the scene refuses, even to those
    who may do everything. `conceals`: who may change a concealed turn still finds it. `waits`: its
    input is one that has become no turn yet.
    """

    body: Any = None
    query: str = ""
    writes: bool = False
    code: str | None = None
    conceals: bool = False
    waits: bool = False


_WRITE = Case(writes=True)
#: In an order in which each still finds its place: what ends something comes last.
CASES: dict[str, Case] = {
    "listWorkspaces": Case(),
    "createWorkspace": Case({"workspace": {"name": "New"}}),
    "getWorkspace": Case(),
    "listWorkspacePrincipals": Case(),
    "listConversations": Case(),
    "listArchivedConversations": Case(),
    "searchConversations": Case(query="?query=look"),
    "createConversation": Case({"conversation": {}}),
    "listConversationChildren": Case(),
    "getConversation": Case(),
    "listConversationEvents": Case(),
    "streamConversationEvents": Case(),
    "listInputs": Case(),
    "getInputMaterialization": Case(),
    "getAttachment": Case(),
    "listTurns": Case(),
    "getTurn": Case(),
    "listVariants": Case(),
    "getVariantRequest": Case(),
    "getVariantReasoning": Case(),
    "getRegenerationReceipt": Case(query="?idempotency_key=k", code="not_found"),
    "readConversationHistory": Case(),
    "getRun": Case(),
    "getRunTranscript": Case(),
    "getRunTask": Case(),
    "getRunTaskRequest": Case(),
    "getRunGraph": Case(),
    "getRunPhases": Case(),
    "estimateContext": Case({"context_estimate": {"model": "dev/small"}}),
    "updateConversation": Case({"conversation": {"title": "T"}}, writes=True),
    "setConversationAccess": Case(
        {
            "access": {
                "default": "none",
                "entries": [
                    {"handle": "agent", "level": "read"},
                    {"handle": "admin", "level": "none"},
                ],
            }
        },
        writes=True,
    ),
    "setDefaultRunner": Case({"default_runner": {"executor_public_id": None}}, writes=True),
    "setTurnViewState": Case({"turn": {"visibility": "hidden"}}, writes=True, conceals=True),
    "setVariantViewState": Case(
        {"variant": {"concealed": True}}, writes=True, code="variant_active"
    ),
    "activateVariant": _WRITE,
    "editTurn": Case({"edit": {"text": "x"}}, writes=True, code="branch_required"),
    "regenerateTurn": Case({"regeneration": {}}, writes=True, code="branch_required"),
    "deleteTurn": Case(writes=True, code="apex_only", conceals=True),
    "cancelRun": Case(writes=True, code="run_settled"),
    "abandonRun": Case(writes=True, code="run_settled"),
    "retryRun": Case(writes=True, code="run_settled"),
    "retryRunTask": Case(writes=True, code="run_settled"),
    "decideRunTask": Case({"approval": {"decision": "approve"}}, writes=True, code="not_eligible"),
    "forkConversation": Case({"fork": {"turn_public_id": "{turn}"}}, writes=True),
    "createInput": Case({"input": {"kind": "message", "text": "x"}}, writes=True),
    "reorderInputs": Case({"inputs": ["{waiting}"]}, writes=True),
    "editInput": Case({"input": {"text": "y"}}, writes=True, waits=True),
    "deleteInput": Case(writes=True, waits=True),
    "compactConversation": Case({"compaction": {"model": "dev/small"}}, writes=True),
    "cancelConversation": _WRITE,
    "archiveConversation": _WRITE,
    "unarchiveConversation": _WRITE,
    "deleteConversation": _WRITE,
    "updateWorkspace": Case({"workspace": {"lock_version": "{lock_version}", "name": "N"}}),
    "archiveWorkspace": Case({"workspace": {"lock_version": "{lock_version}"}}),
    "restoreWorkspace": Case({"workspace": {"lock_version": "{lock_version}"}}),
    "deleteWorkspace": Case(query="?lock_version={lock_version}"),
}
#: Bodies that are wrong in more than one way.
WRONG = (b"", b"{", b"[]", b'{"nothing": "known"}')
#: Keys of a request that are none.
KEYLESS = ("", "k" * 256)
ROUTES = {route.id: route for route in server.families()["agent"][1] if route.plane == "member"}
#: Routes beneath a run lie in a conversation too, though their path does not say so.
IN_WORKSPACE = [it for it in ROUTES.values() if "workspace" in it.path_parameters]
IN_CONVERSATION = [
    it for it in ROUTES.values() if {"conversation", "run"} & set(it.path_parameters)
]
IN_TURN = [it for it in ROUTES.values() if {"turn", "run"} & set(it.path_parameters)]
IN_RUN = [it for it in ROUTES.values() if "run" in it.path_parameters]


def misspelt(route: Route) -> list[str]:
    """Queries of which one parameter each is wrong."""
    words = {"Integer": "x", "Choice": "x", "Flag": "x", "Cursor": "!", "Text": "x" * 10_000}
    return [f"{it.name}={words[type(it).__name__]}" for it in route.query]


@dataclass
class Scene:
    """A run-backed turn with two candidates, a newer message, one with a file, one that waits."""

    where: story.Place
    ids: dict[str, str]

    def at(self, **other: str) -> "Scene":
        """The scene with other ids in it."""
        return Scene(self.where, self.ids | other)

    def path(self, route: Route, **other: str) -> str:
        case = CASES[route.id]
        path = server.AGENT_PREFIX + route.path + case.query
        waiting = {"input": self.ids["waiting"]} if case.waits else {}
        for name, value in (self.ids | waiting | other).items():
            path = path.replace("{" + name + "}", value)
        return path

    def body(self, route: Route) -> Any:
        return _filled(CASES[route.id].body, self.ids)

    def unknown(self, route: Route) -> str:
        """The same path with an id at its end that nobody ever gave out."""
        deepest = route.path_parameters[-1].replace("task_key", "run")
        return self.path(route, **{deepest: NOWHERE})


def ask(
    api: Api,
    scene: Scene,
    route: Route,
    who: str,
    *,
    path: str | None = None,
    key: str | None = None,
    **options: Any,
) -> httpx.Response:
    """Call a route as its case says, or with another path, body or idempotency key."""
    body = scene.body(route)
    if body is not None and not {"content", "json"} & options.keys():
        options["json"] = body
    key = f"k {route.id}" if key is None else key
    headers = {"Idempotency-Key": key} if route.idempotency else {}
    return api.request(route.method, path or scene.path(route), key=who, headers=headers, **options)


def badly(api: Api, scene: Scene, route: Route, who: str) -> Iterator[httpx.Response]:
    """Call a route with all that it does not take: bodies, queries, idempotency keys."""
    for content in WRONG if route.body else ():
        yield ask(api, scene, route, who, content=content)
    for query in misspelt(route):
        path = scene.path(route)
        yield ask(api, scene, route, who, path=path + ("&" if "?" in path else "?") + query)
    for key in KEYLESS if route.idempotency else ():
        yield ask(api, scene, route, who, key=key)


def told(answer: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    """All that an answer tells."""
    return answer.status_code, answer.content, answer.headers.multi_items()


def _filled(body: Any, ids: dict[str, str]) -> Any:
    match body:
        case dict():
            return {name: _filled(value, ids) for name, value in body.items()}
        case list():
            return [_filled(value, ids) for value in body]
        case "{lock_version}":
            return int(ids["lock_version"])
        case str() if body.startswith("{"):
            return ids[body[1:-1]]
    return body


def set_up(database: Database, org: Org, owner: Caller | None = None) -> Scene:
    """Make the scene: the agent may read it, the admin is shut out, and so is everybody else."""
    owner = owner or org.owner
    where = story.place(
        database,
        owner,
        access_default="none",
        entries=[conversation.Entry("agent", "read"), conversation.Entry("admin", "none")],
    )
    said = story.branched(database, where)
    assert said.run is not None
    database.write(lambda tx: story.finish(tx, said))

    def send(tx: Tx, **options: Any) -> inputs.Input:
        talk = access.find(tx, owner, where.workspace.public_id, where.conversation.public_id)
        return inputs.accept(tx, owner, talk, kind="message", text="hi", **options)

    sent = database.write(lambda tx: send(tx, files=[attachment.File("a.txt", "text/plain", b"a")]))
    waits = database.write(lambda tx: send(tx, wishes=Wishes(deliver_at=now() + DAY)))
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
            "waiting": waits.public_id,
            "attachment": sent.wishes.attachments[0],
            "lock_version": str(where.workspace.lock_version),
        },
    )
