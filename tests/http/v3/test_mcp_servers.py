"""MCP servers over HTTP: set up, checked, and their values in no answer."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.toolboxes.sample_server import on_loopback, sample
from serving import Api

TOKEN = "hunter2-tok/en+value"
URL = "https://tools.example/mcp"
LEGACY = str(Path(__file__).parents[2] / "engine" / "toolboxes" / "legacy_server.py")
WEB = {
    "name": "web",
    "transport": "streamable_http",
    "url": f"{URL}?key={TOKEN}",
    "headers": {"X-Key": TOKEN, "Authorization": f"Bearer {TOKEN}"},
}
COMMAND = {
    "name": "local",
    "transport": "stdio",
    "command": sys.executable,
    "args": [LEGACY],
    "env": {"TOKEN": TOKEN},
}


@pytest.fixture
def servers(api):
    return f"{api.v3}/mcp-servers"


@pytest.fixture
def with_commands(database, org, settings, sealer):
    """The API of a server that runs commands."""
    opened = Api(database, org, replace(settings, mcp_stdio=True), sealer)
    yield opened
    opened.close()


def test_a_server_is_set_up_read_changed_and_deleted(api, servers):
    made = api.post(servers, json=WEB)
    assert made.status_code == 201, made.text
    shown = made.json()
    assert shown | {"id": "", "created_at": "", "updated_at": ""} == {
        "id": "", "created_at": "", "updated_at": "",
        "name": "web", "transport": "streamable_http", "url": URL, "query": ["key"],
        "headers": ["Authorization", "X-Key"], "command": None, "args": [], "env": [],
        "enabled": True,
    }  # fmt: skip
    one = f"{servers}/{shown['id']}"
    assert api.get(servers).json() == {"items": [shown]}
    assert api.get(one).json() == shown
    changed = api.patch(one, json={"name": "tools", "enabled": False, "headers": {"X-Key": None}})
    assert changed.status_code == 200, changed.text
    assert (changed.json()["name"], changed.json()["enabled"]) == ("tools", False)
    assert changed.json()["headers"] == ["Authorization"]
    assert changed.json()["query"] == ["key"]
    moved = api.patch(one, json={"url": "https://other.example/"}).json()
    assert (moved["headers"], moved["query"]) == ([], [])
    assert api.delete(one).json() == {"id": shown["id"], "deleted": True}
    gone = (api.get(one), api.patch(one, json={}), api.delete(one), api.post(f"{one}/check"))
    for answer in gone:
        assert (answer.status_code, answer.json()) == (404, {"error": "mcp_server_not_found"})


def test_others_see_nothing_of_it(api, servers):
    made = api.post(servers, json=WEB).json()
    theirs = "/v3/organizations/elsewhere/mcp-servers"
    assert api.get(theirs, key="api:stranger").json() == {"items": []}
    one = f"{theirs}/{made['id']}"
    for method, path in (("GET", one), ("PATCH", one), ("DELETE", one), ("POST", f"{one}/check")):
        answer = api.request(method, path, key="api:stranger", json={})
        assert (answer.status_code, answer.json()) == (404, {"error": "mcp_server_not_found"})
    assert api.get(servers, key="api:stranger").json() == {"error": "organization_not_found"}


def test_reading_and_writing_are_scopes_of_their_own(api, servers):
    reader, writer = api.key(wanted=["mcp:read"]), api.key(wanted=["mcp:write"])
    assert api.post(servers, json=WEB, key=reader).json()["required_scope"] == "mcp:write"
    made = api.post(servers, json=WEB, key=writer).json()
    one = f"{servers}/{made['id']}"
    for path in (servers, one):
        assert api.get(path, key=writer).json()["required_scope"] == "mcp:read"
        assert api.get(path, key=reader).status_code == 200
    for method, path in (("PATCH", one), ("DELETE", one), ("POST", f"{one}/check")):
        refused = api.request(method, path, key=reader, json={})
        assert refused.json() == {"error": "missing_scope", "required_scope": "mcp:write"}


def test_a_command_needs_the_setting_and_an_admin(api, servers, with_commands):
    refused = api.post(servers, json=COMMAND)
    assert (refused.status_code, refused.json()["error"]) == (409, "mcp_stdio_disabled")
    by_member = with_commands.post(servers, json=COMMAND, key="api:member")
    assert (by_member.status_code, by_member.json()["error"]) == (403, "forbidden")
    made = with_commands.post(servers, json=COMMAND, key="api:admin")
    assert made.status_code == 201, made.text
    assert (made.json()["args"], made.json()["env"]) == ([LEGACY], ["TOKEN"])
    one = f"{servers}/{made.json()['id']}"
    for method, path in (("PATCH", one), ("DELETE", one), ("POST", f"{one}/check")):
        answer = with_commands.request(method, path, key="api:member", json={})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    for method, path in (("PATCH", one), ("POST", f"{one}/check")):
        answer = api.request(method, path, json={})
        assert (answer.status_code, answer.json()["error"]) == (409, "mcp_stdio_disabled")
    assert api.delete(one).status_code == 200


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "No Spaces"}, "invalid_mcp_server"),
        ({"transport": "sse"}, "invalid_request"),
        ({"url": "ftp://x.example"}, "invalid_mcp_server"),
        ({"url": None}, "invalid_mcp_server"),
        ({"headers": {"X-Key": f"{TOKEN}\r\nA: b"}}, "invalid_mcp_server"),
        ({"headers": {"X-Key": [TOKEN]}}, "invalid_request"),
        ({"headers": {TOKEN: TOKEN}}, "invalid_mcp_server"),
        ({"env": {"A": TOKEN}}, "invalid_mcp_server"),
    ],
)
def test_what_cannot_be_set_up_is_not_repeated_in_the_error(api, servers, change, code):
    answer = api.post(servers, json=WEB | change)
    assert (answer.status_code, answer.json()["error"]) == (400, code)
    assert TOKEN not in answer.text
    assert api.get(servers).json() == {"items": []}


def test_a_name_is_taken_once(api, servers):
    api.post(servers, json=WEB)
    again = api.post(servers, json=WEB)
    assert (again.status_code, again.json()["error"]) == (409, "mcp_server_exists")
    assert TOKEN not in again.text


def test_a_check_lists_the_tools(api, servers):
    async def act():
        async with on_loopback(sample()) as url:
            made = await api.send("POST", servers, json=WEB | {"url": f"{url}?key={TOKEN}"})
            return await api.send("POST", f"{servers}/{made.json()['id']}/check")

    answer = api.runner.run(act())
    assert answer.status_code == 200, answer.text
    tools = {tool["name"]: tool["description"] for tool in answer.json()["tools"]}
    assert tools["mcp__web__echo"] == "Say it again."


def test_a_check_of_a_command_masks_what_it_knows(with_commands, servers):
    made = with_commands.post(servers, json=COMMAND).json()
    answer = with_commands.post(f"{servers}/{made['id']}/check")
    assert answer.json()["tools"] == [
        {"name": f"mcp__local__{name}", "description": "Knows [redacted-secret]."}
        for name in ("grow", "token")
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"args": ["-c", "import os; raise SystemExit('no ' + os.environ['TOKEN'])"]},
         "no [redacted-secret]"),
        ({"command": "no-such-program"}, "no program 'no-such-program'"),
    ],
)  # fmt: skip
def test_a_check_that_fails_says_why(with_commands, servers, change, why):
    made = with_commands.post(servers, json=COMMAND | change).json()
    answer = with_commands.post(f"{servers}/{made['id']}/check")
    assert (answer.status_code, answer.json()["error"]) == (409, "mcp_server_unavailable")
    assert why in answer.json()["message"]
    assert TOKEN not in answer.text


def test_no_value_is_in_an_answer_or_a_file(api, servers, settings):
    made = api.post(servers, json=WEB)
    one = f"{servers}/{made.json()['id']}"
    answers = [made, api.get(servers), api.get(one), api.patch(one, json={"name": "x"})]
    assert all(TOKEN not in answer.text for answer in answers)
    with api.database.read() as tx:
        assert TOKEN not in repr(tx.rows("SELECT * FROM mcp_servers"))
    files = [path for path in settings.data.rglob("*") if path.is_file()]
    assert all(TOKEN.encode() not in path.read_bytes() for path in files)
