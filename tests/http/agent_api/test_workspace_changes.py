"""What becomes of a workspace: its owner changes, archives, restores and deletes it."""

import pytest

import story
from stenograph.conversations import access, conversation

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


@pytest.fixture
def home(where):
    return where.path.rpartition("/conversations/")[0]


def code(answer):
    return answer.status_code, answer.json()["error"]["code"]


def patch(api, home, version, key="member", **new):
    return api.patch(home, json={"workspace": {"lock_version": version, **new}}, key=key)


def move(api, home, verb, version, key="member"):
    return api.post(f"{home}/{verb}", json={"workspace": {"lock_version": version}}, key=key)


def test_a_change_sets_what_it_names_and_counts_up(api, home):
    answer = patch(api, home, 0, name="Office", metadata={"a": 1})
    assert answer.status_code == 200
    found = answer.json()["workspace"]
    assert (found["name"], found["metadata"], found["lock_version"]) == ("Office", {"a": 1}, 1)
    assert found["access_mode"] == "account_wide"
    assert api.get(home).json()["workspace"] == found
    assert code(patch(api, home, 0, name="Late")) == (409, "stale_object")
    assert api.get(home).json()["workspace"]["name"] == "Office"


def test_who_is_let_in_and_out(api, home):
    patch(api, home, 0, access_mode="private", members=["@member"])
    seen = {k: api.get(home, key=f"member:{k}").status_code for k in ("member", "admin", "agent")}
    assert seen == {"member": 200, "admin": 404, "agent": 404}
    patch(api, home, 1, members=["agent"])
    found = api.get(f"{home}/principals").json()["principals"]
    assert [one["handle"] for one in found] == ["owner", "agent"]
    assert api.get(home, key="member:member").status_code == 404


@pytest.mark.parametrize(
    ("new", "status", "word"),
    [
        ({"name": " "}, 422, "validation_failed"),
        ({"name": None}, 400, "parameter_invalid"),
        ({"access_mode": "open"}, 400, "parameter_invalid"),
        ({"members": ["nobody"]}, 422, "principal_not_eligible"),
        ({"lock_version": None}, 400, "parameter_invalid"),
    ],
)
def test_a_bad_change_is_refused_and_changes_nothing(api, home, new, status, word):
    before = api.get(home).content
    answer = api.patch(home, json={"workspace": {"lock_version": 0} | new})
    assert code(answer) == (status, word)
    assert api.get(home).content == before


def test_only_its_owner_changes_a_workspace(api, home):
    for answer in (
        patch(api, home, 0, key="member:admin", name="Mine"),
        move(api, home, "archive", 0, key="member:admin"),
        move(api, home, "restore", 0, key="member:admin"),
        api.delete(f"{home}?lock_version=0", key="member:admin"),
    ):
        assert code(answer) == (403, "not_workspace_owner")


def test_an_archived_workspace_is_read_and_takes_nothing_new(api, home, where):
    answer = move(api, home, "archive", 0)
    assert answer.status_code == 200
    found = answer.json()["workspace"]
    assert (found["state"], found["lock_version"]) == ("archived", 1)
    assert found["archived_at"] is not None
    assert move(api, home, "archive", 1).json()["workspace"] == found
    assert api.get(where.path).status_code == 200
    made = api.post(
        f"{home}/conversations", json={"conversation": {}}, headers={"Idempotency-Key": "k"}
    )
    said = api.post(
        f"{where.path}/inputs",
        json={"input": {"kind": "message", "text": "x"}},
        headers={"Idempotency-Key": "k"},
    )
    for refused in (made, said, patch(api, home, 1, name="x")):
        assert code(refused) == (409, "workspace_not_active")
    assert code(move(api, home, "restore", 0)) == (409, "stale_object")
    back = move(api, home, "restore", 1).json()["workspace"]
    assert (back["state"], back["archived_at"], back["lock_version"]) == ("active", None, 2)
    assert patch(api, home, 2, name="x").status_code == 200


def test_a_deleted_workspace_is_nowhere_with_all_it_holds(api, database, home, where):
    said = story.rounds(database, where, ["a"])
    assert code(api.delete(home)) == (400, "parameter_missing")
    assert code(api.delete(f"{home}?lock_version=7")) == (409, "stale_object")
    answer = api.delete(f"{home}?lock_version=0")
    assert (answer.status_code, answer.content) == (204, b"")
    unknown = api.get(home.rpartition("/")[0] + "/" + NOWHERE)
    for path in (home, where.path, where.run(said), f"{home}/conversations", f"{home}/principals"):
        gone = api.get(path)
        assert (gone.status_code, gone.content) == (404, unknown.content)
    assert api.delete(f"{home}?lock_version=1").status_code == 404
    assert api.get("/agent_api/v1/workspaces").json()["workspaces"] == []


def test_a_workspace_where_something_works_stays(api, database, home, where):
    said = database.write(lambda tx: story.open_run(tx, where))
    assert code(api.delete(f"{home}?lock_version=0")) == (409, "conversation_busy")
    database.write(lambda tx: story.finish(tx, said))
    assert api.delete(f"{home}?lock_version=0").status_code == 204


def test_who_deletes_a_workspace_deletes_nothing_that_is_not_theirs(api, database, org, home):
    def make(tx):
        found = access.find_workspace(tx, org.admin, home.rpartition("/")[2])
        return conversation.create(tx, org.admin, found, access_default="none")

    database.write(make)
    assert code(api.delete(f"{home}?lock_version=0")) == (403, "not_authorized")
    assert api.get(home).status_code == 200
