"""A session's events: what is told to whom, and waiting for what comes."""

import asyncio

import pytest

from stenograph.sessions import ending
from steps import call, record

TOKEN = "correct-horse-battery-staple"


@pytest.fixture
def sessions(api):
    return f"{api.v3}/sessions"


def events(api, sessions, session_id, key="api:member", **query):
    answer = api.get(f"{sessions}/{session_id}/events", key=key, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_was_said_thought_and_done(api, sessions):
    session_id = record(api, sessions, call(2, "found"))
    steer = {"step_id": 3, "source": "user", "message": "Hurry"}
    done = {"step_id": 4, "source": "agent", "message": "Here."}
    api.post(f"{sessions}/{session_id}/steps", json={"steps": [steer, done], "finish": {}})
    found = events(api, sessions, session_id)
    assert set(found) == {"session", "items", "next_seq"}
    assert found["session"] == api.get(f"{sessions}/{session_id}").json()
    items = found["items"]
    assert [(i["type"], i.get("text")) for i in items] == [
        ("message", "Find it"),
        ("assistant", "Looking."),
        ("tool", None),
        ("message", "Hurry"),
        ("assistant", "Here."),
        ("status", None),
    ]
    assert [i["data"].get("kind") for i in items] == ["prompt", None, None, "message", None, None]
    assert items[1]["data"]["reasoning"] == "It may be here."
    assert items[1]["data"]["usage"] == {
        "input_tokens": 5, "cached_input_tokens": None, "output_tokens": 2, "cost_usd": None,
    }  # fmt: skip
    tool = items[2]["data"]
    assert (tool["name"], tool["arguments"], tool["result"]) == ("grep", {"q": "it"}, "found")
    assert (tool["status"], tool["result_truncated"]) == ("completed", False)
    assert items[5]["data"]["status"] == "exit"
    seqs = [i["seq"] for i in items]
    assert seqs == sorted(set(seqs))
    assert found["next_seq"] == seqs[-1]
    assert all("event" not in i["data"] for i in items)


def test_pages_are_behind_a_seq(api, sessions):
    session_id = record(api, sessions, call(2, "a"), call(3, "b"))
    everything = events(api, sessions, session_id)["items"]
    got, after = [], -1
    while True:
        found = events(api, sessions, session_id, after_seq=after, limit=2)
        assert len(found["items"]) <= 2
        if not found["items"]:
            assert found["next_seq"] == after
            break
        got += found["items"]
        after = found["next_seq"]
    assert got == everything


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("after_seq=-2", "invalid_after_seq"),
        ("after_seq=x", "invalid_after_seq"),
        ("limit=0", "invalid_limit"),
        ("limit=501", "invalid_limit"),
        ("wait_ms=20001", "invalid_wait_ms"),
        ("wait_ms=-1", "invalid_wait_ms"),
    ],
)
def test_a_parameter_out_of_range(api, sessions, query, code):
    session_id = record(api, sessions)
    answer = api.get(f"{sessions}/{session_id}/events?{query}")
    assert (answer.status_code, answer.json()) == (400, {"error": code})
    nowhere = api.get(f"{sessions}/x/events?{query}")
    assert (nowhere.status_code, nowhere.json()) == (404, {"error": "session_not_found"})


def test_diagnosis_is_for_administrators_with_the_scope(api, sessions):
    session_id = record(api, sessions, call(2, "a"))
    plain = events(api, sessions, session_id)
    narrow = api.key(wanted=["sessions:read"])
    assert events(api, sessions, session_id, key=narrow) == plain
    full = events(api, sessions, session_id, key="api:admin")
    assert [i["type"] for i in full["items"]] == [i["type"] for i in plain["items"]]
    assert [i["data"].pop("event")["type"] for i in full["items"]] == [
        "turn_created", "round_result", "task_status",
    ]  # fmt: skip
    assert full == plain
    row = {"type": "context_compacted", "public_id": "e", "payload": "{}", "occurred_at": 1}

    def compact(tx):
        conversation_id = tx.value("SELECT conversation_id FROM events")
        tx.insert("events", conversation_id=conversation_id, sequence=99, **row)

    api.database.write(compact)
    assert events(api, sessions, session_id) == plain
    last = events(api, sessions, session_id, key="api:admin")["items"][-1]
    assert (last["type"], last["seq"]) == ("context_compacted", 99)


def test_what_is_concealed_is_not_told_of(api, sessions):
    session_id = record(api, sessions, call(2, "a"))
    api.database.write(lambda tx: tx.run("UPDATE turns SET deleted_at = 1"))
    assert events(api, sessions, session_id)["items"] == []
    told = api.get(f"{sessions}/{session_id}/events", key="api:admin").text
    for text in ("Find it", "Looking.", "It may be here.", "grep"):
        assert text not in told.replace('"title":"Find it"', "")


def test_what_retention_deleted_is_gone_and_the_event_stays(api, sessions):
    session_id = record(api, sessions, call(2, "a"))

    def prune(tx):
        tx.run("UPDATE events SET task_id = NULL")
        tx.run("UPDATE usage_receipts SET invocation_id = NULL")
        tx.run("DELETE FROM tasks")

    api.database.write(prune)
    items = events(api, sessions, session_id)["items"]
    assert [(i["type"], i.get("text")) for i in items] == [
        ("message", "Find it"), ("assistant", None), ("tool", None),
    ]  # fmt: skip
    assert items[1]["data"]["task_key"] == "r1"


def test_results_are_cut_and_no_piece_of_a_secret_is_left_at_the_cut(api, sessions):
    api.post(f"{api.v3}/secrets", json={"name": "TOKEN", "value": TOKEN})
    for before in range(4_000 - len(TOKEN) - 2, 4_003):
        output = "x" * before + TOKEN + "y" * 50
        session_id = record(api, sessions, call(2, output), secrets=["TOKEN"])
        tool = events(api, sessions, session_id)["items"][2]["data"]
        assert len(tool["result"]) <= 4_000
        assert tool["result"].startswith("x" * min(before, 3_900))
        for size in range(3, len(TOKEN) + 1):
            assert TOKEN[:size] not in tool["result"]
        assert tool["result_truncated"]


def test_arguments_that_are_too_long_are_left_out(api, sessions):
    session_id = record(api, sessions, call(2, "a", {"text": "x" * 20_000}))
    assert events(api, sessions, session_id)["items"][2]["data"]["arguments"] is None


# Waiting


async def wait(api, path, before):
    """Ask for events, do `before` once the question waits, and return the answer."""
    asking = asyncio.create_task(api.send("GET", path))
    done, _ = await asyncio.wait({asking}, timeout=0.15)
    assert not done, "it answered before there was anything to tell"
    await asyncio.to_thread(before)
    return (await asyncio.wait_for(asking, 15)).json()


def test_who_waits_is_answered_when_something_is_committed(api, sessions):
    session_id = record(api, sessions, call(2, "a"))
    last = events(api, sessions, session_id)["next_seq"]
    path = f"{sessions}/{session_id}/events?after_seq={last}&wait_ms=20000"
    third = {"step_id": 3, "source": "agent", "message": "More."}

    async def both():
        asking = asyncio.create_task(api.send("GET", path))
        done, _ = await asyncio.wait({asking}, timeout=0.15)
        assert not done, "it answered before there was anything to tell"
        await api.send("POST", f"{sessions}/{session_id}/steps", json={"steps": [third]})
        return (await asyncio.wait_for(asking, 15)).json()

    found = api.runner.run(both())
    assert [i["text"] for i in found["items"]] == ["More."]
    assert found["next_seq"] == found["items"][-1]["seq"] > last


def test_who_waits_is_answered_when_the_session_ends(api, sessions, org):
    session_id = api.post(sessions, json={"recorded": True}).json()["session_id"]
    path = f"{sessions}/{session_id}/events?wait_ms=20000"

    def end():
        api.database.write(lambda tx: ending.cancel(tx, org.owner, session_id))

    found = api.runner.run(wait(api, path, end))
    assert found["items"] == []
    assert found["next_seq"] == -1
    assert found["session"]["status"] == "cancelled"
    # And not made to wait for what will not come.
    assert api.get(path).json() == found


def test_who_loses_access_while_waiting_is_told_nothing(api, sessions):
    session_id = api.post(sessions, json={"recorded": True}).json()["session_id"]
    path = f"{sessions}/{session_id}/events?wait_ms=20000"

    def delete():
        api.database.write(lambda tx: tx.run("UPDATE conversations SET deleted_at = 1"))

    assert api.runner.run(wait(api, path, delete)) == {"error": "session_not_found"}


def test_waiting_ends_with_nothing(api, sessions):
    session_id = api.post(sessions, json={"recorded": True}).json()["session_id"]
    found = events(api, sessions, session_id, wait_ms=1)
    assert (found["items"], found["next_seq"]) == ([], -1)


def test_a_look_costs_the_same_however_many_events(api, sessions):
    short = record(api, sessions, *(call(n, "a") for n in range(2, 4)))
    long = record(api, sessions, *(call(n, "a") for n in range(2, 202)))
    seen, counts = [], set()
    for session_id, limit in ((short, 500), (long, 3), (long, 500)):
        api.database.observer = seen.append
        seen.clear()
        events(api, sessions, session_id, limit=limit)
        api.database.observer = None
        counts.add(len(seen))
    assert len(counts) == 1
