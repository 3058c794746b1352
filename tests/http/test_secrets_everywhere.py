"""A run's secret values survive in no reading of either family, no error, no log line.

The routes are those of the served OpenAPI document: one that is new and that this test does not
know how to reach fails it.
"""

import io
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
import structlog
from typer.testing import CliRunner

import planted
from devices.hands import enrollment, new_ticket
from people import make_org
from planted import VALUE, leaks
from serving import Api
from stenograph import logs
from stenograph.accounts.scopes import SCOPES
from stenograph.cli import main
from stenograph.sessions import secret
from stenograph.storage import sealing
from stenograph.storage.sealing import Sealer
from stenograph.trajectories.atif.check import problems
from trajectories.importers.claude_code_lines import SESSION, Log, call, text

NAME = "TOKEN"
#: Values of query parameters that show more, or other things.
QUERIES: dict[str, list[str]] = {
    "after": [], "before": [], "first": [], "limit": [], "after_seq": [], "wait_ms": [],
    "after_position": [], "before_position": [], "created_after": [], "created_before": [],
    "reason_id": [], "tag": [],
    "format": ["atif"],
    "status": ["exit", "error"],
    "order": ["desc"],
    "order_by": ["last_activity_at"],
    "side": ["1"],
    "include_hidden": ["true"],
    "prefix": ["r2t0"],
    "items": ["lifecycle", "transcript&after=Y3ZlaTow", "progress&after=Y3ZlaTow"],
    "transcript": ["1"],
    "query": ["x", "marker", planted.CORE],
    "idempotency_key": ["1"], "archived": [], "include_auxiliary": [], "around_turn_public_id": [],
}  # fmt: skip
_PARAMETER = re.compile(r"\{(\w+)\}")


FILE = {"filename": "a.txt", "content_type": "text/plain", "data": "d29yZHM="}


class Reader:
    """Reads every place of the API that there is, as the owner with all scopes.

    `answers` are the statuses and `leaking` what was found in the bytes, by path.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        key = api.key("api", wanted=SCOPES)
        self.keys = {"/v3": key, "/api": key, "/agent_api": api.org.keys["member"]}
        self.answers: dict[str, int] = {}
        self.leaking: dict[str, list[str]] = {}
        self.markers = 0

    def get(self, path: str) -> Any:
        """Read a place, and look at every byte of the answer."""
        family = next((name for name in self.keys if path.startswith(name)), None)
        answer = self.api.get(path, key=self.keys[family] if family else "")
        assert answer.status_code < 500, path
        self.answers[path] = answer.status_code
        if found := leaks(str(answer.headers).encode() + answer.content):
            self.leaking[path] = found
        self.markers += answer.content.count(b"[redacted-secret]")
        return answer

    def listed(self, path: str, items: str, name: str) -> list[str]:
        found = self.get(path).json()
        return [item[name] for item in found.get(items, ()) if item.get(name) is not None]

    def named(self, parameter: str, at: str) -> list[str]:
        """Return what there is for a parameter of a path that is filled in up to it."""
        match parameter:
            case "orgId":
                return ["default"]
            case "reasonId" | "mcpServerId":
                return self.listed(at, "items", "id")
            case "deviceId":
                return self.listed(at, "devices", "id")
            case "claim" | "taskKey" | "childOrgId":
                return ["none"]
            case "provider":
                return ["openai"]
            case "sessionId":
                return self.listed(f"{at}?first=200", "items", "session_id")
            case "name":
                return ["none.png"] if at.endswith("/media") else [NAME]
            case "workspace":
                return self.listed(at, "workspaces", "public_id")
            case "conversation":
                top = [*self._pages(at, ("", "?side=1")), *self._pages(f"{at}/archived", ("",))]
                for one in top:  # grows while it is gone through
                    top += self._pages(f"{at}/{one}/children", ("",))
                return top
            case "turn":
                return self.listed(f"{at}?limit=100&include_hidden=true", "turns", "public_id")
            case "input":
                turns = at.removesuffix("/inputs") + "/turns"
                return self.listed(turns, "turns", "input_public_id")
            case "attachment":
                with self.api.database.read() as tx:
                    return [row[0] for row in tx.rows("SELECT public_id FROM attachments")]
            case "variant":
                return self.listed(at, "variants", "public_id")
            case "run":
                return self._runs(at.removesuffix("/runs"))
            case "task_key":
                run = self.get(at.removesuffix("/tasks")).json()["run"]
                return [task["task_key"] for task in run["tasks"]]
        pytest.fail(f"this test knows no {{{parameter}}} below {at}")

    def _pages(self, path: str, queries: tuple[str, ...]) -> list[str]:
        return [one for q in queries for one in self.listed(path + q, "conversations", "public_id")]

    def _runs(self, workspace: str) -> list[str]:
        runs = []
        for conversation in self.named("conversation", f"{workspace}/conversations"):
            turns = f"{workspace}/conversations/{conversation}/turns"
            for turn in self.named("turn", turns):
                runs += self.listed(f"{turns}/{turn}/variants", "variants", "run_public_id")
        return runs

    def filled(self, template: str) -> Iterator[str]:
        """Return a path with every combination of what there is for its parameters."""
        found = _PARAMETER.search(template)
        if found is None:
            yield template
            return
        before = template[: found.start()]
        for value in self.named(found[1], before.removesuffix("/")):
            yield from self.filled(f"{before}{value}{template[found.end() :]}")

    def read_all(self) -> dict[str, list[str]]:
        """Read every place; returns the paths that were there, by the path of the document."""
        found: dict[str, list[str]] = {}
        for template, operations in self.get("/openapi.json").json()["paths"].items():
            if "get" not in operations:
                continue
            asked = operations["get"].get("parameters", ())
            names = [parameter["name"] for parameter in asked if parameter["in"] == "query"]
            needed = [p["name"] for p in asked if p["in"] == "query" and p["required"]]
            given = "".join(f"{name}={QUERIES[name][0]}&" for name in needed)
            found[template] = [
                path
                for path in self.filled(template)
                if self.get(f"{path}?{given}" if given else path).status_code == 200
            ]
            for path in found[template]:
                for query in (f"{name}={value}" for name in names for value in QUERIES[name]):
                    self.get(f"{path}?{given}{query}")
        for path in ("/docs", "/metrics", "/healthz"):
            self.get(path)
        return found


@pytest.fixture
def keeper(database, org, settings) -> Iterator[Api]:
    """The API, sealing with the key of the data folder as the command line does."""
    opened = Api(database, org, settings, sealing.sealer(settings.data, None))
    made = opened.post(f"{opened.v3}/secrets", json={"name": NAME, "value": VALUE})
    assert made.status_code == 201
    yield opened
    opened.close()


def take_in(api: Api, secrets: list[str]) -> None:
    """Fill the record: an imported session, one recorded step by step, a Reason's, an input."""
    body = json.dumps(planted.document()).encode()
    assert problems(json.loads(body)) == []
    imported = api.post(f"{api.v3}/sessions/import?secrets={','.join(secrets)}", content=body)
    reason = api.post(f"{api.v3}/reasons", json={"name": "mine"}).json()["id"]
    made = api.post(
        f"{api.v3}/sessions",
        json={
            "recorded": True,
            "reason_id": reason,
            "secrets": secrets,
            "prompt": planted.cut(VALUE, planted.CUTS[0]),
            "tags": [f"tag-{VALUE}"],
            "mode": "ephemeral",
            "agent": planted.document()["agent"] | {"tool_definitions": None},
            "session_policy": {VALUE: [planted.spelled(VALUE)]},
        },
    )
    at = f"{api.v3}/sessions/{made.json()['session_id']}/steps"
    steps = planted.document()["steps"]
    for step in steps:
        step["step_id"] += 1
    finish = {"status": "error", "outcome": "failure", "result_summary": planted.spelled(VALUE)}
    recorded = api.post(at, json={"steps": steps[:3]})
    ended = api.post(at, json={"steps": steps[3:], "finish": finish})
    asked = api.post(f"{api.v3}/reasons/{reason}/messages", json={"message": "hello"})
    workspace = api.get(f"{api.agent}/workspaces").json()["workspaces"][0]["public_id"]
    at = f"{api.agent}/workspaces/{workspace}/conversations"
    own = api.post(at, json={"conversation": {"title": "t"}}, headers={"Idempotency-Key": "1"})
    said = api.post(
        f"{at}/{own.json()['conversation']['public_id']}/inputs",
        json={"input": {"kind": "message", "text": "hi", "attachments": [FILE]}},
        headers={"Idempotency-Key": "2"},
    )
    server = {"name": "t", "transport": "streamable_http", "url": "https://tools.example"}
    offered = api.post(f"{api.v3}/mcp-servers", json=server)
    ticket = msgspec.to_builtins(new_ticket(machine="m"))
    allowed = api.post(f"{api.v3}/devices/enrollment-tickets", json=ticket)
    sent = enrollment(new_ticket(**ticket), allowed.json()["enrollment_ticket"])
    enrolled = api.post(
        f"{api.agent}/executor/enrollments", json={"enrollment": msgspec.to_builtins(sent)}
    )
    for answer in (imported, made, recorded, ended, asked, own, said, offered, allowed, enrolled):
        assert answer.status_code < 300, answer.text
        assert not secrets or leaks(answer.content) == [], answer.text


#: What has no text of a run: nothing to be read, or only names, ids and words of this server.
NOTHING_THERE = {
    "media/{name}", "{variant}/request", "{task_key}/request",
    "{conversation}/regeneration_receipt",
}  # fmt: skip
NO_TEXT_OF_RUNS = {
    "v3/self", "v3/deployment", "{orgId}/reasons", "reasons/{reasonId}", "{reasonId}/messages",
    "{orgId}/secrets", "v1/workspaces", "workspaces/{workspace}", "{conversation}/events",
    "{conversation}/inputs", "{input}/materialization", "attachments/{attachment}",
    "conversations/archived",
    "{orgId}/mcp-servers", "mcp-servers/{mcpServerId}", "{orgId}/provider-credentials",
    "{orgId}/devices", "devices/{deviceId}", "{orgId}/machines", "{run}/phases",
    "{sessionId}/approvals", "account/retention",
}  # fmt: skip


def short(template: str) -> str:
    return "/".join(template.split("/")[-2:])


def test_no_reading_of_either_family_holds_a_secret(keeper):
    take_in(keeper, [NAME])
    path = f"{keeper.v3}/secrets/{NAME}"
    for change in (
        lambda: None,
        lambda: keeper.put(path, json={"value": "another-value"}),
        lambda: keeper.delete(path),
    ):
        change()
        reader = Reader(keeper)
        found = reader.read_all()
        assert reader.leaking == {}
        assert reader.markers > 100
        assert {short(t) for t, paths in found.items() if not paths} == NOTHING_THERE
    assert keeper.get(f"{keeper.v3}/secrets").json()["items"] == []


def test_every_reading_would_show_what_is_no_secret(sqlite_database, settings):
    """The value does reach every place that is read here: given no secret, each shows it."""
    api = Api(sqlite_database, make_org(sqlite_database), settings, Sealer(bytes(32)))
    take_in(api, [])
    reader = Reader(api)
    found = reader.read_all()
    silent = {
        short(template)
        for template, paths in found.items()
        if paths and not any(path.partition("?")[0] in paths for path in reader.leaking)
    }
    assert silent == NO_TEXT_OF_RUNS
    api.close()


def test_a_log_imported_again_with_secrets_is_masked_from_then_on(keeper):
    """Also when a secret has another value by now: text may hold either."""
    body = json.dumps(planted.document()).encode()
    with_secret = f"{keeper.v3}/sessions/import?secrets={NAME}"
    assert leaks(keeper.post(f"{keeper.v3}/sessions/import", content=body).content) != []
    assert keeper.post(with_secret, content=body).json()["sessions"][0]["change"] == "unchanged"
    reader = Reader(keeper)
    reader.read_all()
    # Only the agent that was made of the log's name keeps it.
    assert {p.rsplit("/", 1)[1] for p in reader.leaking} <= {"principals"}
    keeper.put(f"{keeper.v3}/secrets/{NAME}", json={"value": "another-value"})
    for _ in range(2):
        assert keeper.post(with_secret, content=body).status_code == 200
    with keeper.database.read() as tx:
        row = tx.value("SELECT conversation_id FROM imports")
        assert set(secret.values(tx, keeper.sealer, row)) == {VALUE, "another-value"}
        kept = tx.rows("SELECT name FROM session_secrets WHERE conversation_id = :id", id=row)
        assert [name for (name,) in kept] == [NAME, NAME]


def test_a_log_imported_by_command_is_masked_too(keeper, database_location, settings, tmp_path):
    log = Log()
    log.line("ai-title", aiTitle=f"about {VALUE}", sessionId=SESSION)
    log.user(planted.cut(VALUE, planted.CUTS[0]))
    log.answer("m1", text(planted.cut(VALUE, planted.CUTS[1])), call("c1", VALUE, **{VALUE: VALUE}))
    log.result("c1", planted.cut(VALUE, planted.CUTS[2]), is_error=True)
    log.answer("m2", {"type": "thinking", "thinking": planted.spelled(VALUE), "signature": "s"})
    (tmp_path / "log.jsonl").write_bytes(log.bytes())
    (tmp_path / "doc.json").write_text(json.dumps(planted.document()))
    broken = {**planted.document(), "steps": [{VALUE: VALUE}]}
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    place = ["--data", str(settings.data), "--database", database_location.url]
    for json_too in ([], ["--json"]):
        done = CliRunner().invoke(
            main.app, ["import", str(tmp_path), "--secret", NAME, *place, *json_too]
        )
        assert done.exit_code == 1, done.output
        assert leaks(done.output.encode()) == [], done.output
    reader = Reader(keeper)
    reader.read_all()
    assert reader.leaking == {}
    assert reader.markers > 100


def bodies(schema: dict[str, Any], schemas: dict[str, Any], depth: int = 0) -> Iterator[Any]:
    """Return JSON that is what a schema asks for, but for the value in one place of it."""
    yield VALUE
    yield [VALUE]
    yield {VALUE: VALUE}
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rsplit("/", 1)[1]]
    for name, inner in schema.get("properties", {}).items():
        for body in bodies(inner, schemas, depth + 1) if depth < 2 else (VALUE,):
            yield {name: body}


def test_no_error_repeats_what_was_sent(keeper):
    """Whatever is wrong with a request; of a session that has the secret in JSON's place too."""
    take_in(keeper, [NAME])
    reader = Reader(keeper)
    document = reader.get("/openapi.json").json()
    bad = quote(VALUE, safe="")
    refused = 0
    for template, operations in document["paths"].items():
        for method, operation in operations.items():
            if method == "parameters":
                continue
            # The last of each: of the session that was imported first, with the secret.
            path = [template, *reader.filled(template)][-1] if method != "delete" else template
            nowhere = _PARAMETER.sub(bad, template)
            requests: list[tuple[str, dict[str, Any]]] = [(nowhere, {})]
            asked = [p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"]
            requests += [(f"{path}?{name}={bad}", {}) for name in asked]
            content = operation.get("requestBody", {}).get("content", {})
            if content:
                schema = content["application/json"]["schema"]
                made = list(bodies(schema, document["components"]["schemas"]))
                made += [planted.document() | {"steps": [body]} for body in made]
                made += [{"steps": [{"step_id": 1, VALUE: VALUE}]}, {"finish": {"status": VALUE}}]
                suffix = f"?secrets={NAME}" if path.endswith("/import") else ""
                requests += [(path + suffix, {"json": body}) for body in made]
                requests.append((path + suffix, {"content": json.dumps([VALUE])[:-1].encode()}))
            for url, options in requests:
                headers = {"Idempotency-Key": str(refused)}
                answer = keeper.request(method.upper(), url, headers=headers, **options)
                assert answer.status_code != 500, (method, url, options)
                if answer.status_code >= 400:
                    refused += 1
                    assert leaks(answer.content) == [], (method, url, options, answer.text)
    assert refused > 300


def test_no_log_line_holds_a_secret_or_a_key(keeper, monkeypatch):
    take_in(keeper, [NAME])
    key = keeper.org.keys["api"]

    def broken(ctx, tx, found):
        known = secret.values_many(tx, ctx.sealer, [one.id for one in found])
        structlog.get_logger().warning(f"about {known[0]}", key=ctx.header("Authorization"))
        raise RuntimeError(f"no {known[0]} for {key}")

    written = io.StringIO()
    structlog.configure(
        processors=[*logs.PROCESSORS, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(written),
    )
    monkeypatch.setattr("stenograph.http.v3.sessions.shown", broken)
    with keeper.database.read() as tx:
        session = tx.value(
            "SELECT min(c.public_id) FROM conversations c JOIN sessions ON"
            " conversation_id = c.id WHERE recorded = 1"
        )
    try:
        answer = keeper.get(f"{keeper.v3}/sessions")
        made = keeper.post(f"{keeper.v3}/sessions/{session}/cancel")
    finally:
        structlog.reset_defaults()
    for refused in (answer, made):
        assert refused.status_code == 500
        assert leaks(refused.content) == []
    lines = written.getvalue()
    assert lines.count("about [redacted-secret]") == 2
    assert lines.count("request failed") == 2
    assert leaks(lines.encode()) == []
    assert key not in lines
