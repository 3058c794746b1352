"""Search and history over HTTP: members, limits, codes, and what nobody may learn by asking."""

from typing import Any

import pytest

import story
from stenograph.http.paging import keyset_cursor
from stenograph.sessions import secret, store_secrets
from stenograph.storage.database import Tx


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner, title="Weekly planning")


@pytest.fixture
def path(where):
    return f"/agent_api/v1/workspaces/{where.workspace.public_id}/conversation_search"


@pytest.fixture
def search(api, path):
    """Return the matches of a search."""

    def search(query: str, key: str | None = None, **parameters: Any) -> list[dict[str, Any]]:
        answer = api.get(path, params={"query": query, **parameters}, key=key)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["matches"]
        return found

    return search


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_search_answers_with_exactly_these_members(api, database, where, path):
    said = story.message(database, where, "Plans for the week: " + "x" * 600)
    answer = api.get(path, params={"query": "plan week"})
    assert answer.json() == {
        "matches": [
            {
                "conversation_public_id": where.conversation.public_id,
                "title": "Weekly planning",
                "turn_public_id": said.turn.public_id,
                "variant_public_id": said.variant.public_id,
                "position": 0,
                "field": "content",
                "inherited": False,
                "excerpt": "Plans for the week: " + "x" * 480,
                "truncated": True,
            },
            {
                "conversation_public_id": where.conversation.public_id,
                "title": "Weekly planning",
                "turn_public_id": None,
                "variant_public_id": None,
                "position": None,
                "field": "title",
                "inherited": False,
                "excerpt": "Weekly planning",
                "truncated": False,
            },
        ],
        "pagination": {"next_after": None},
    }


def test_pages_are_read_by_cursor(api, database, where, path):
    for n in range(5):
        story.message(database, where, f"word {n}")
    seen, after = [], None
    while True:
        params = {"query": "word", "limit": 2} | ({"after": after} if after else {})
        page = api.get(path, params=params).json()
        seen += [match["turn_public_id"] for match in page["matches"]]
        after = page["pagination"]["next_after"]
        if after is None:
            break
    assert len(seen) == len(set(seen)) == 5
    assert [turn[:13] for turn in seen] == sorted((turn[:13] for turn in seen), reverse=True)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, "parameter_missing"),
        ({"query": ""}, "parameter_invalid"),
        ({"query": " \t"}, "parameter_invalid"),
        ({"query": "x" * 1025}, "parameter_invalid"),
        ({"query": "字" * 342}, "parameter_invalid"),
        ({"query": "x", "limit": 0}, "parameter_invalid"),
        ({"query": "x", "limit": 51}, "parameter_invalid"),
        ({"query": "x", "limit": "a"}, "parameter_invalid"),
        ({"query": "x", "archived": "yes"}, "parameter_invalid"),
        ({"query": "x", "include_auxiliary": "maybe"}, "parameter_invalid"),
        ({"query": "x", "after": "junk"}, "parameter_invalid"),
        ({"query": "x", "after": "Y3ZlaTo3"}, "parameter_invalid"),
    ],
)
def test_a_bad_parameter_is_400(api, path, parameters, expected):
    assert code(api.get(path, params=parameters)) == (400, expected)


@pytest.mark.parametrize("turn", [-1, 2**61, 2**62, 2**63, "1", None])
def test_a_cursor_that_was_never_issued_is_400(api, path, turn):
    made = keyset_cursor("desc", turn=turn, conversation="x", field="prompt")
    answer = api.get(path, params={"query": "x", "after": made})
    assert code(answer) == (400, "parameter_invalid")


@pytest.mark.parametrize(
    "query", ["?!", "🙂", "\0", "%00", '"', "'", "a AND", "NEAR(", "\u202e", "x" * 1024, "_w1"]
)
def test_whatever_is_asked_for_is_answered(search, query):
    assert search(query) == []


def test_who_may_not_see_it_gets_404_and_executors_401(api, database, org, where, path):
    closed = story.another(database, where, access_default="none")
    story.message(database, closed, "hello")
    params = {"query": "hello"}
    assert code(api.get(path, params=params, key="executor")) == (401, "unauthorized")
    assert code(api.get(path, params=params, key="member:stranger")) == (404, "not_found")
    assert code(api.get(path.replace("workspaces/0", "workspaces/1"), params=params))[0] == 404
    assert len(api.get(path, params=params).json()["matches"]) == 1
    assert api.get(path, params=params, key="member:member").json()["matches"] == []
    history = f"{closed.path}/history"
    assert code(api.get(history, key="member:member")) == (404, "not_found")
    assert code(api.get(history, key="executor")) == (401, "unauthorized")
    assert api.get(history).status_code == 200


def give_secret(database, sealer, org, where, value):
    def give(tx: Tx) -> None:
        secret.create(tx, org.owner, sealer, "PIN", value)
        sealed = secret.take(tx, org.owner, sealer, ["PIN"])
        store_secrets.give(tx, where.conversation.id, sealed)

    database.write(give)


def test_a_secret_is_masked_and_cannot_be_guessed(api, database, org, where, sealer, search):
    give_secret(database, sealer, org, where, "47114711")
    plain = story.another(database, where, title="Of the 47114711")
    for place in (where, plain):
        story.message(database, place, "the pin is 47114711 today")
    shared = story.forked(database, where, story.message(database, where, "a fork point"))
    story.message(database, shared, "the pin is 47114711 today")

    open_one = plain.conversation.public_id
    shown = [m["excerpt"] for m in search("pin today") if m["conversation_public_id"] != open_one]
    assert shown == ["the pin is [redacted-secret] today"] * 3
    assert {m["conversation_public_id"] for m in search("47114711")} == {open_one}
    told = api.get(where.path + "/history").text + api.get(shared.path + "/history").text
    assert "47114711" not in told
    assert "[redacted-secret]" in told


def test_history_answers_with_exactly_these_members(api, database, where):
    made = story.rounds(database, where, ["thought"])
    said = story.message(database, where, "y" * 2_001)
    answer = api.get(where.path + "/history").json()
    created = {turn["public_id"]: turn.pop("created_at") for turn in answer["turns"]}
    assert answer == {
        "conversation": {
            "public_id": where.conversation.public_id,
            "title": "Weekly planning",
        },
        "turns": [
            {
                "public_id": made.turn.public_id,
                "position": 0,
                "kind": "direct_reply",
                "role": "assistant",
                "prompt": "Look around.",
                "content": "Two files.",
                "truncated": False,
            },
            {
                "public_id": said.turn.public_id,
                "position": 1,
                "kind": "message",
                "role": "user",
                "content": "y" * 2_000,
                "truncated": True,
            },
        ],
        "pagination": {
            "before_position": 0,
            "after_position": 1,
            "has_older": False,
            "has_newer": False,
        },
        "truncated": False,
    }
    assert all(moment.endswith("Z") for moment in created.values())


def test_history_is_read_around_a_turn_or_beside_a_position(api, database, where):
    said = [story.message(database, where, f"m{n}") for n in range(6)]
    path = where.path + "/history"

    def contents(**parameters: Any) -> list[str]:
        answer = api.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        return [turn["content"] for turn in answer.json()["turns"]]

    assert contents(limit=2) == ["m4", "m5"]
    assert contents(before_position=3, limit=2) == ["m1", "m2"]
    assert contents(after_position=3) == ["m4", "m5"]
    assert contents(around_turn_public_id=said[2].turn.public_id, limit=3) == ["m1", "m2", "m3"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"before_position": 1, "after_position": 1},
        {"around_turn_public_id": "x", "after_position": 1},
        {"limit": 0},
        {"limit": 51},
        {"before_position": -1},
        {"after_position": 2**31},
    ],
)
def test_a_bad_place_in_history_is_400(api, where, parameters):
    answer = api.get(where.path + "/history", params=parameters)
    assert code(answer) == (400, "parameter_invalid")


def test_a_turn_that_is_not_there_is_404(api, database, where):
    other = story.message(database, story.another(database, where), "elsewhere")
    for turn in ("x", "", other.turn.public_id):
        answer = api.get(where.path + "/history", params={"around_turn_public_id": turn})
        assert code(answer) == (404, "not_found")


def test_what_was_just_written_is_found(database, where, search):
    assert search("fresh") == []
    story.message(database, where, "a fresh word")
    assert [m["excerpt"] for m in search("fresh")] == ["a fresh word"]
