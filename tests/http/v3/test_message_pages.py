"""`listReasonMessages` and `listSessionConversation`, as their founding text promises them."""

import re

import pytest

from people import make_org
from serving import Api
from stenograph.sessions import messages
from stenograph.sessions.messages import Message

UNKNOWN = "01890000-0000-7000-8000-000000000000"
REQUIRED = ["items", "has_next_page", "end_cursor", "reason_id", "session_id"]


@pytest.fixture
def reason(api):
    made = api.post(f"{api.v3}/reasons", json={"name": "Mine"})
    assert made.status_code == 201
    return made.json()


@pytest.fixture
def path(api, reason):
    return f"{api.v3}/reasons/{reason['id']}/messages"


def send(api, path, text, **more):
    answer = api.post(path, json={"message": text, **more})
    assert answer.status_code == 202, answer.text
    return answer.json()


def page(api, path, **query):
    answer = api.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def conversation_id(api, session_id):
    with api.database.read() as tx:
        return tx.value("SELECT id FROM conversations WHERE public_id = :id", id=session_id)


def post_notices(api, session_id, count):
    """The agent posts `count` messages of its own."""
    row_id = conversation_id(api, session_id)
    rows = [Message("message", "assistant", content=f"n{n}") for n in range(count)]
    api.database.write(lambda tx: messages.append_all(tx, row_id, rows))


def test_the_page_is_empty_until_the_first_message_opens_the_conversation(api, reason, path):
    found = page(api, path)
    assert found == {
        "items": [],
        "has_next_page": False,
        "end_cursor": None,
        "reason_id": reason["id"],
        "session_id": None,
    }
    assert api.get(path, params={"after": "1"}).json() == {"error": "invalid_cursor"}
    send(api, path, "hello")
    opened = page(api, path)
    assert list(opened) == REQUIRED
    assert opened["session_id"] is not None
    assert opened["end_cursor"] == "1"
    (item,) = opened["items"]
    assert set(item) == {"id", "cursor", "kind", "role", "content", "created_at"}
    assert (item["kind"], item["role"], item["content"]) == ("prompt", "user", "hello")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", item["created_at"])
    own = api.get(f"{api.v3}/reasons/{reason['id']}").json()
    assert own["session_id"] == opened["session_id"]


def test_a_cancelled_turn_has_its_reply_and_the_conversation_goes_on(api, path):
    first = send(api, path, "one")
    session_id = page(api, path)["session_id"]
    api.post(f"{api.v3}/sessions/{session_id}/cancel", json={})
    second = send(api, path, "two", attachments=[{"id": "f1"}])
    items = page(api, path)["items"]
    assert [i["kind"] for i in items] == ["prompt", "reply", "message"]
    assert items[0] == first
    assert items[2] == second
    assert items[2]["attachments"] == [{"id": "f1"}]
    reply = items[1]
    assert (reply["role"], reply["content"]) == ("assistant", "")
    assert (reply["status"], reply["outcome"]) == ("cancelled", None)
    assert "attachments" not in reply
    assert all("status" not in i and "outcome" not in i for i in (items[0], items[2]))


def test_the_prompts_attachments_are_not_listed_and_an_empty_list_is(api, path):
    assert "attachments" not in send(api, path, "one", attachments=[{"id": "f1"}])
    assert send(api, path, "two", attachments=[])["attachments"] == []


def test_a_childs_result_is_marked(api, path):
    send(api, path, "one")
    row_id = conversation_id(api, page(api, path)["session_id"])
    row = Message("message", "user", source="subagent", content="done")
    api.database.write(lambda tx: messages.append(tx, row_id, row))
    assert page(api, path)["items"][1]["metadata"] == {"source": "subagent"}


def test_both_lists_are_one(api, path):
    send(api, path, "one")
    send(api, path, "two")
    found = page(api, path)
    same = page(api, f"{api.v3}/sessions/{found['session_id']}/conversation")
    assert {**same, "reason_id": found["reason_id"]} == found
    assert list(same) == ["items", "has_next_page", "end_cursor", "session_id"]


@pytest.mark.parametrize("first", [1, 2, 7, 200])
def test_pages_of_any_size_are_the_whole_list(api, path, first):
    send(api, path, "one")
    post_notices(api, page(api, path)["session_id"], 14)
    everything = page(api, path)["items"]
    assert len(everything) == 15
    got, after = [], {}
    while True:
        found = page(api, path, first=first, **after)
        got += found["items"]
        after = {"after": found["end_cursor"]}
        assert found["has_next_page"] == (len(got) < 15)
        if not found["has_next_page"]:
            break
    assert got == everything
    # Polling goes on from there: the cursor comes back until something is said.
    assert page(api, path, **after) == {**found, "items": [], "end_cursor": after["after"]}
    said = send(api, path, "more")
    assert page(api, path, **after)["items"] == [said]


def test_a_page_holds_fifty_unless_told_and_exactly_what_there_is_is_no_next_page(api, path):
    send(api, path, "one")
    post_notices(api, page(api, path)["session_id"], 49)
    found = page(api, path)
    assert (len(found["items"]), found["has_next_page"]) == (50, False)
    post_notices(api, found["session_id"], 151)
    found = page(api, path)
    assert (len(found["items"]), found["has_next_page"]) == (50, True)
    found = page(api, path, first=200)
    assert (len(found["items"]), found["has_next_page"]) == (200, True)
    found = page(api, path, first=200, after=found["items"][0]["cursor"])
    assert (len(found["items"]), found["has_next_page"]) == (200, False)


def test_an_items_cursor_is_as_good_as_an_end_cursor(api, path):
    send(api, path, "one")
    post_notices(api, page(api, path)["session_id"], 3)
    items = page(api, path)["items"]
    for index, item in enumerate(items):
        assert page(api, path, after=item["cursor"])["items"] == items[index + 1 :]


@pytest.mark.parametrize(
    "first", ["0", "-1", "201", "5.0", "+5", " 5", "5 ", "٥", "", "x", "1e1", "9" * 30, "5\n", "５"]
)
@pytest.mark.parametrize("kind", ["reason", "session"])
def test_first_is_a_whole_number_from_1_to_200(sqlite_api, kind, first):
    api, paths = sqlite_api
    answer = api.get(paths[kind], params={"first": first})
    assert (answer.status_code, answer.json()) == (400, {"error": "invalid_first"})


@pytest.mark.parametrize(
    "after",
    ["", "0", "-1", "3", "01", "+1", " 1", "1.0", "x", "null", "١", "MQ", "9" * 18, "9" * 30,
     "9223372036854775807", "4294967297", "1\n", "1" * 5000, "\x00", "\ud800", "01890000-0000"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["reason", "session"])
def test_what_the_list_could_not_have_issued_is_no_cursor(sqlite_api, kind, after):
    api, paths = sqlite_api
    raw = after.encode("utf-8", "surrogatepass")
    query = "".join(f"%{byte:02X}" for byte in raw)
    answer = api.get(f"{paths[kind]}?after={query}")
    assert (answer.status_code, answer.json()) == (400, {"error": "invalid_cursor"})


def test_unknown_parameters_are_ignored_and_the_last_of_two_counts(sqlite_api):
    api, paths = sqlite_api
    plain = api.get(paths["reason"]).json()
    assert api.get(paths["reason"] + "?before=x&limit=0&order=desc").json() == plain
    assert api.get(paths["reason"] + "?first=0&first=1").json()["items"] == plain["items"][:1]


@pytest.fixture
def sqlite_api(sqlite_database, settings, sealer):
    """An API on SQLite with a Reason of two messages: (api, paths of both lists)."""
    api = Api(sqlite_database, make_org(sqlite_database), settings, sealer)
    made = api.post(f"{api.v3}/reasons", json={"name": "Mine"}).json()
    path = f"{api.v3}/reasons/{made['id']}/messages"
    send(api, path, "one")
    send(api, path, "two")
    session_id = page(api, path)["session_id"]
    yield api, {"reason": path, "session": f"{api.v3}/sessions/{session_id}/conversation"}
    api.close()


# Who may read


def test_the_owner_and_whom_it_is_shared_with_read_and_nobody_else(api, reason, path):
    send(api, path, "hello")
    session_id = page(api, path)["session_id"]
    other = f"{api.v3}/sessions/{session_id}/conversation"
    assert api.get(path, key="api").status_code == 200
    for key in ("api:admin", "api:member"):
        assert api.get(path, key=key).json() == {"error": "reason_not_found"}
        assert api.get(other, key=key).json() == {"error": "session_not_found"}
    shared = api.put(f"{api.v3}/reasons/{reason['id']}/shares", json={"people": ["member"]})
    assert shared.status_code == 200
    for where in (path, other):
        assert api.get(where, key="api:member").status_code == 200
        assert api.get(where, key="api:admin").status_code == 404
    assert api.post(path, key="api:member", json={"message": "x"}).json()["error"] == "forbidden"


@pytest.mark.parametrize("name", [UNKNOWN, UNKNOWN.upper(), "x", "1", "%20", "%00", "..%2F", "é"])
def test_what_is_not_there_and_what_is_not_ones_to_see_are_the_same_bytes(api, path, name):
    send(api, path, "hello")
    unknown = api.get(f"{api.v3}/reasons/{name}/messages")
    concealed = api.get(path, key="api:member")
    assert unknown.status_code == concealed.status_code == 404
    assert unknown.content == concealed.content == b'{"error":"reason_not_found"}'
    assert set(unknown.headers) == set(concealed.headers)


def test_the_order_of_checks(api, path):
    """Key 401, organization 404, scope 403, resource 404, parameters 400."""
    bad = "?first=0&after=x"
    nowhere = f"{api.v3}/reasons/{UNKNOWN}/messages{bad}"
    keyless = api.get(path + bad, key="")
    assert keyless.status_code == 401
    assert keyless.json() == {"error": "missing_bearer", "message": "Authorization required"}
    narrow = api.key(wanted=["run"])
    elsewhere = nowhere.replace("/default/", "/elsewhere/")
    assert api.get(elsewhere, key=narrow).json() == {"error": "organization_not_found"}
    denied = api.get(nowhere, key=narrow)
    assert denied.status_code == 403
    assert denied.json() == {"error": "missing_scope", "required_scope": "sessions:read"}
    assert api.get(nowhere).json() == {"error": "reason_not_found"}
    assert api.get(path + bad).status_code == 400


def test_keys_of_the_other_family_and_the_organizations_id(api, path, org):
    assert api.get(path, key="member").status_code == 401
    by_id = path.replace("/default/", f"/{org.owner.organization_public_id}/")
    assert api.get(by_id).json() == api.get(path).json()


def test_a_page_costs_the_same_however_wide_and_however_long_the_history(api, reason, path):
    seen = []
    counts = set()
    send(api, path, "hello")
    session_id = page(api, path)["session_id"]
    for more in (100, 4_900):
        post_notices(api, session_id, more)
        for first in (1, 200):
            api.database.observer = seen.append
            seen.clear()
            page(api, path, first=first, after=40)
            api.database.observer = None
            counts.add(len(seen))
    assert len(counts) == 1
    assert counts.pop() <= 8


# Sending


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"message": " \n"}, "message_required"),
        ({}, "invalid_request"),
        ({"message": 1}, "invalid_request"),
        ({"message": "x", "model": "two words"}, "invalid_model"),
        ({"message": "x", "reasoning_effort": "huge"}, "invalid_reasoning_effort"),
        ({"message": "x", "attachments": ["x"]}, "invalid_request"),
        ({"message": "x", "idempotency_key": ""}, "invalid_request"),
    ],
)
def test_a_message_that_cannot_be_sent_changes_nothing(api, path, body, code):
    answer = api.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, code)
    assert page(api, path)["session_id"] is None
    nowhere = f"{api.v3}/reasons/{UNKNOWN}/messages"
    assert api.post(nowhere, json=body).json() == {"error": "reason_not_found"}
