"""Following a session by server-sent events: the items of the long poll, and what is told live."""

from dataclasses import replace
from typing import Any

import pytest

from engine.driving import Driven, scene
from feeds import ask, new_session
from live import conversation, listening, until
from serving import Api
from stenograph.engine import watching
from stenograph.engine.engine import Place
from stenograph.events import live
from stenograph.events.journal import Event
from stenograph.sessions import ending, secret, session
from steps import call, record

TOKEN = "quokka7zebra"


@pytest.fixture
def api(database, org, settings, sealer):
    opened = Api(database, org, replace(settings, stream_seconds=3_600), sealer)
    yield opened
    opened.close()


@pytest.fixture
def server(api):
    with listening(api) as found:
        yield found
        until(found.is_idle)


@pytest.fixture
def sessions(api):
    return f"{api.v3}/sessions"


def test_the_items_are_those_of_the_long_poll(server, api, sessions):
    session_id = record(api, sessions, call(2, "found"), call(3, "more"))
    path = f"{sessions}/{session_id}/events"
    listed = api.get(path, key="api:member").json()["items"]
    with server.stream(path + "/stream", key="api:member") as stream:
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        told = stream.take(len(listed))
        assert [it.data for it in told] == listed
        assert [(it.type, it.id) for it in told] == [(it["type"], str(it["seq"])) for it in listed]
        api.post(f"{sessions}/{session_id}/steps", json={"steps": [call(4, "later")], "finish": {}})
        rest = list(stream)
    assert [it.type for it in rest] == ["assistant", "tool", "status", "session"]
    assert rest[-1].data == api.get(f"{sessions}/{session_id}", key="api:member").json()
    assert rest[-1].id is None


def test_who_comes_back_misses_nothing(server, api, sessions):
    session_id = record(api, sessions, call(2, "a"), call(3, "b"))
    path = f"{sessions}/{session_id}/events/stream"
    with server.stream(path, key="api") as stream:
        got = stream.take(2)
    with server.stream(path + "?after_seq=1", key="api", **{"Last-Event-ID": got[-1].id}) as stream:
        got += stream.take(3)
    listed = api.get(f"{sessions}/{session_id}/events").json()["items"]
    assert [it.data for it in got] == listed


def test_a_session_that_has_ended_ends_at_once(server, api, sessions, org):
    session_id = record(api, sessions, call(2, "a"))
    path = f"{sessions}/{session_id}/events/stream"
    with server.stream(path + "?after_seq=999999", key="api") as stream:
        until(lambda: not server.is_idle())
        # Without a turn under way there is no event of its end, and it is told all the same.
        api.database.write(
            lambda tx: (
                tx.run("UPDATE turns SET status = 'completed'")
                + tx.run("UPDATE conversations SET active_turn_id = NULL")
            )
        )
        api.database.write(lambda tx: ending.cancel(tx, org.owner, session_id))
        (last,) = list(stream)
    assert (last.type, last.data["status"]) == ("session", "cancelled")
    with server.stream(path + "?after_seq=999999", key="api") as stream:
        assert [it.type for it in stream] == ["session"]


def test_diagnosis_is_for_administrators_with_the_scope(server, api, sessions):
    session_id = record(api, sessions, call(2, "a"))
    path = f"{sessions}/{session_id}/events/stream"
    for key, diagnostic in (("api:admin", True), (api.key(wanted=["sessions:read"]), False)):
        with server.stream(path, key=key) as stream:
            told = stream.take(3)
        assert [it.type for it in told] == ["message", "assistant", "tool"]
        assert all(("event" in it.data["data"]) == diagnostic for it in told)


@pytest.mark.parametrize(
    ("key", "query", "status", "body"),
    [
        ("", "", 401, {"error": "missing_bearer", "message": "Authorization required"}),
        ("member", "", 401, {"error": "missing_bearer", "message": "Authorization required"}),
        ("none", "", 403, {"error": "missing_scope", "required_scope": "sessions:read"}),
        ("api:stranger", "", 404, {"error": "organization_not_found"}),
        ("api", "after_seq=x", 400, {"error": "invalid_after_seq"}),
        ("api", "after_seq=-2", 400, {"error": "invalid_after_seq"}),
        ("api", "transcript=maybe", 400, {"error": "invalid_transcript"}),
    ],
)
def test_who_may_not_and_what_is_wrong(server, api, sessions, key, query, status, body):
    session_id = record(api, sessions)
    key = api.key(wanted=["org:read"]) if key == "none" else key
    path = f"{sessions}/{session_id}/events/stream?{query}"
    with server.stream(path, key=key) as stream:
        stream.answer.read()
        assert (stream.answer.status_code, stream.answer.json()) == (status, body)
    with server.stream(f"{sessions}/nowhere/events/stream?{query}", key="api") as stream:
        stream.answer.read()
        assert stream.answer.json() == {"error": "session_not_found"}


def test_a_revoked_key_ends_it_in_the_familys_words(server, api, sessions):
    session_id = record(api, sessions)
    with server.stream(f"{sessions}/{session_id}/events/stream", key="api") as stream:
        assert next(stream).type == "message"
        api.database.write(lambda tx: tx.run("UPDATE credentials SET revoked_at = 1"))
        (last,) = list(stream)
    assert last.type == "error"
    assert last.data == {"error": "missing_bearer", "message": "Authorization required"}


def test_a_scope_that_is_gone_ends_it(server, api, sessions):
    session_id = record(api, sessions)
    with server.stream(f"{sessions}/{session_id}/events/stream", key="api") as stream:
        assert next(stream).type == "message"
        api.database.write(lambda tx: tx.run("UPDATE credentials SET scopes = 'org:read'"))
        (last,) = list(stream)
    assert last.type == "error"


def test_deltas_are_told_to_who_asks_for_them_and_never_of_what_is_concealed(server, api, org):
    talk = conversation(api, new_session(api.database, org.owner))
    shown = api.database.write(lambda tx: ask(tx, org.owner, talk.id, "one"))
    concealed = api.database.write(lambda tx: ask(tx, org.owner, talk.id, "two"))
    api.database.write(
        lambda tx: tx.run("UPDATE turns SET deleted_at = 1 WHERE id = :id", id=concealed.id)
    )
    path = f"{api.v3}/sessions/{talk.public_id}/events/stream"
    ended = Event("turn_status", shown.id, shown.variant_id, payload={"status": "completed"})
    with (
        server.stream(path + "?transcript=1", key="api") as told,
        server.stream(path, key="api") as plain,
    ):
        until(lambda: live.is_watched(talk.id, "transcript"))
        talk.tell(concealed, "hidden")
        talk.tell(shown, "Hello")
        talk.append(ended)
        first, second = told.take(2)
        assert next(plain) == second
    data = {"turn_id": "t", "task_key": "r1", "text": "Hello"}
    assert (first.type, first.data) == ("text_delta", {"type": "text_delta", "data": data})
    assert (first.id, second.type) == (None, "status")


def test_a_turn_is_watched_from_its_first_word_to_its_end_without_its_secret(
    api, database, org, sealer, tmp_path
):
    """The engine, the hub, the masks and the stream together."""
    driven = Driven(database, org.owner, Place(f"sqlite:///{tmp_path / 'engine.db'}"))
    driven.watch = watching.watch(database, sealer)
    api.post(f"{api.v3}/secrets", json={"name": "TOKEN", "value": TOKEN})
    talk = scene(
        f"""
[[round]]
think = "It is {TOKEN}, which I do not tell to anybody at all."
say = "Reading {TOKEN} for you, wait a moment."
call = [{{ tool = "read", arguments = {{ path = "{TOKEN}" }} }}]
pause_ms = 50
[[round]]
say = "Done with {TOKEN} and all the rest of it."
pause_ms = 50
"""
    )
    with listening(api) as server:
        session_id = driven.open("wait for me")
        driven.settle()

        def give(tx: Any) -> None:
            found = session.find(tx, org.owner, session_id)
            secret.give(tx, found.id, secret.take(tx, org.owner, sealer, ["TOKEN"]))

        driven.write(give)
        driven.say(session_id, talk, model="dev/thinker", reasoning_effort="high")
        seq = driven.rows("SELECT max(sequence) FROM events")[0][0]
        path = f"{api.v3}/sessions/{session_id}/events/stream?transcript=1&after_seq={seq}"
        agent = conversation(api, driven.rows("SELECT id FROM conversations")[0][0]).path
        with (
            server.stream(path, key="api") as stream,
            server.stream(f"{agent}/events/stream?items=transcript") as transcript,
        ):
            until(lambda: len(next(iter(live._subscriptions.values()), ())) == 2)
            driven.settle()
            told = list(stream)
            frames = []
            while (
                not frames
                or frames[-1].type != "turn"
                or (frames[-1].data["variant_status"] != "completed")
            ):
                frames.append(next(transcript))
        until(server.is_idle)
    assert TOKEN not in str(told) + str(frames)
    marker = "[redacted-secret]"
    for got in (
        [(it.type, it.data["data"]) for it in told if it.id is None and it.type != "session"],
        [(it.type, it.data) for it in frames if it.id is None],
    ):
        by_round = {
            key: "".join(
                d["text"] for kind, d in got if kind == "text_delta" and d["task_key"] == key
            )
            for key in ("r1", "r2")
        }
        assert by_round == {
            "r1": f"Reading {marker} for you, wait a moment.",
            "r2": f"Done with {marker} and all the rest of it.",
        }
        thought = "".join(d["text"] for kind, d in got if kind == "reasoning_delta")
        assert thought == f"It is {marker}, which I do not tell to anybody at all."
    kinds = [it.type for it in frames]
    assert kinds.index("tool_call_started") < kinds.index("round") < kinds.index("call")
    settled = [it.data for it in frames if it.type == "round"]
    assert [it["text"] for it in settled] == list(by_round.values())
    assert [it["task_key"] for it in settled] == ["r1", "r2"]
    (called,) = [it.data for it in frames if it.type == "call"]
    assert (called["status"], called["name"]) == ("completed", "read")
    assert [it.type for it in told if it.id is not None][-1] == "status"
    assert told[-1].type == "session"
