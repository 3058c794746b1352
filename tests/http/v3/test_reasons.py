"""Reasons over HTTP: their shape, their lists, what is refused."""

import pytest

KEYS = {
    "id", "name", "instructions", "default_model", "repositories", "is_main", "owner_id",
    "session_id", "shared_with", "created_at", "updated_at",
}  # fmt: skip


@pytest.fixture
def reasons(api):
    return f"{api.v3}/reasons"


def make(api, reasons, **body):
    answer = api.post(reasons, json={"name": "Mine", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_reason_is_made_read_changed_and_deleted(api, reasons, org):
    body = {"instructions": "Be kind.", "default_model": "a/b", "repositories": ["x/y"]}
    made = make(api, reasons, **body, is_main=True)
    assert set(made) == KEYS
    assert made["owner_id"] == org.owner.principal_public_id
    assert made["session_id"] is None
    own = f"{reasons}/{made['id']}"
    assert api.get(own).json() == made
    changed = api.patch(own, json={"name": "Other", "default_model": None}).json()
    assert changed == {
        **made, "name": "Other", "default_model": None, "updated_at": changed["updated_at"],
    }  # fmt: skip
    assert api.patch(own, json={}).json()["name"] == "Other"
    gone = api.delete(own)
    assert (gone.status_code, gone.json()) == (200, {"id": made["id"], "deleted": True})
    for answer in (
        api.get(own),
        api.delete(own),
        api.patch(own, json={}),
        api.get(own + "/messages"),
    ):
        assert (answer.status_code, answer.json()) == (404, {"error": "reason_not_found"})


def test_lists_are_paged_by_end_cursor(api, reasons):
    made = [make(api, reasons, name=f"r{n}") for n in range(5)]
    assert api.get(reasons).json()["items"] == made
    got, after = [], {}
    while True:
        page = api.get(reasons, params={"first": 2, **after}).json()
        got += page["items"]
        after = {"after": page["end_cursor"]}
        if not page["has_next_page"]:
            break
    assert got == made
    empty = api.get(reasons, params=after).json()
    assert empty == {"items": [], "has_next_page": False, "end_cursor": after["after"]}
    assert api.get(reasons, key="api:member").json() == {
        "items": [], "has_next_page": False, "end_cursor": None,
    }  # fmt: skip
    for bad in ("x", "", "1", "eyJpZCI6MX0", api.get(f"{api.v3}/sessions").text[:5]):
        assert api.get(reasons, params={"after": bad}).json() == {"error": "invalid_cursor"}
    assert api.get(reasons, params={"first": 0}).json() == {"error": "invalid_first"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_request"),
        ({"name": ""}, "invalid_request"),
        ({"name": " "}, "invalid_name"),
        ({"name": "a\nb"}, "invalid_name"),
        ({"name": "x" * 201}, "invalid_request"),
        ({"name": "x", "default_model": "a b"}, "invalid_model"),
        ({"name": "x", "repositories": "x/y"}, "invalid_request"),
        ([], "invalid_request"),
    ],
)
def test_a_reason_that_cannot_be_made(api, reasons, body, code):
    answer = api.post(reasons, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, code)
    assert api.get(reasons).json()["items"] == []


def test_a_second_main_reason_is_refused(api, reasons):
    make(api, reasons, is_main=True)
    answer = api.post(reasons, json={"name": "x", "is_main": True})
    assert (answer.status_code, answer.json()["error"]) == (409, "main_reason_exists")


def test_shares_are_the_whole_list(api, reasons, org):
    made = make(api, reasons)
    shares = f"{reasons}/{made['id']}/shares"
    both = api.put(shares, json={"people": ["@member", org.admin.principal_public_id]}).json()
    assert set(both["shared_with"]) == {
        org.member.principal_public_id, org.admin.principal_public_id,
    }  # fmt: skip
    assert api.get(f"{reasons}/{made['id']}", key="api:member").json() == both
    listed = api.get(reasons, key="api:admin").json()["items"]
    assert [r["id"] for r in listed] == [made["id"]]
    for answer in (
        api.put(shares, key="api:member", json={"people": []}),
        api.patch(f"{reasons}/{made['id']}", key="api:member", json={"name": "x"}),
        api.delete(f"{reasons}/{made['id']}", key="api:member"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    unknown = api.put(shares, json={"people": ["nobody"]})
    assert (unknown.status_code, unknown.json()["error"]) == (400, "principal_not_found")
    assert api.put(shares, json={"people": []}).json()["shared_with"] == []
    assert api.get(f"{reasons}/{made['id']}", key="api:member").status_code == 404
    assert api.put(shares, key="api:member", json={"people": []}).status_code == 404
