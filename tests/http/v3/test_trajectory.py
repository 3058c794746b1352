"""`exportSessionTrajectory` and the media beside it, as a client gets them."""

import asyncio
import gc
import json
import re

import pytest

from stenograph.http.v3.trajectory import WHOLE
from stenograph.trajectories.importers import atif
from stenograph.trajectories.recording.record import record
from trajectories.atif.documents import agent, document, image, user

RUN = "Zq3" * 20
LONG = 3000


def take_in(api, *steps, mode="standard", **root):
    content = json.dumps(document(*steps, **root))
    answer = api.post(f"{api.v3}/sessions/import?mode={mode}", content=content)
    assert answer.status_code == 201, answer.text
    return f"{api.v3}/sessions/{answer.json()['sessions'][0]['session_id']}"


def long_session(api):
    said = "ten words that are no secret to anybody at all " * 10
    return take_in(api, *(agent(message=f"{n}: {said}") for n in range(LONG)))


def test_a_long_document_is_the_same_as_a_short_one_but_longer(api):
    answer = api.get(f"{long_session(api)}/trajectory")
    assert int(answer.headers["content-length"]) == len(answer.content) > WHOLE
    steps = answer.json()["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, LONG + 1))


def test_a_reader_that_leaves_or_stalls_holds_no_snapshot(api):
    path = f"{long_session(api)}/trajectory"
    key = api.org.keys["api"]
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": [(b"authorization", f"Bearer {key}".encode())],
        "http_version": "1.1", "scheme": "http", "server": ("steno.test", 80),
        "client": ("127.0.0.1", 1), "root_path": "", "asgi": {"version": "3.0"},
    }  # fmt: skip

    async def stalled():
        first = asyncio.Event()

        async def receive():
            await asyncio.Event().wait()

        async def send(message):
            if message["type"] == "http.response.body":
                first.set()
                await asyncio.Event().wait()  # nobody reads on

        tasks = [asyncio.create_task(api.app(dict(scope), receive, send)) for _ in range(12)]
        await asyncio.wait_for(first.wait(), 60)
        assert (await api.send("GET", f"{api.v3}/sessions")).status_code == 200
        made = await api.send("POST", f"{api.v3}/sessions", json={"prompt": "x", "recorded": True})
        assert made.status_code == 201
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        tasks.clear()
        gc.collect()
        await asyncio.sleep(0.1)  # what is left of the answers is closed by the loop

    api.runner.run(stalled())


@pytest.mark.parametrize("mode", ["standard", "ephemeral"])
def test_what_the_tiers_leave(api, mode):
    steps = (
        user(message=f"take {RUN}"),
        agent(
            message="ok",
            tool_calls=[
                {"tool_call_id": RUN, "function_name": RUN, "arguments": {RUN: [RUN, 10**45]}}
            ],
            observation={"results": [{"source_call_id": RUN, "content": RUN}]},
            extra={RUN: {"deep": [RUN]}},
        ),
    )
    child = document(user(message=RUN), trajectory_id=f"t{RUN}", session_id=RUN, notes=RUN)
    path = take_in(api, *steps, mode=mode, notes=RUN, subagent_trajectories=[child])
    answer = api.get(f"{path}/trajectory")
    if mode == "ephemeral":
        assert answer.json()["steps"][1]["tool_calls"][0]["arguments"] == {RUN: [RUN, 10**45]}
        return
    assert re.search(r"[A-Za-z0-9_-]{40}", answer.text) is None
    step = answer.json()["steps"][1]
    assert (
        step["tool_calls"][0]["tool_call_id"]
        == (step["observation"]["results"][0]["source_call_id"])
    )
    assert answer.json()["extra"]["fidelity"]["redactions"]["[redacted]"] > 0


def test_media_of_a_subagent_lies_beside_the_document_that_shows_it(api):
    picture = user(message=[image("media/a.png")])
    child = document(picture, trajectory_id="c")
    data = json.dumps(document(user(), subagent_trajectories=[child])).encode()
    draft = atif.read(data, files={"media/a.png": b"picture"})
    found = api.database.write(lambda tx: record(tx, api.org.owner, draft))
    for session in found:
        answer = api.get(f"{api.v3}/sessions/{session.session_id}/media/a.png")
        assert (answer.status_code, answer.content) == (200, b"picture")
    for name in ("b.png", "..%2Fa.png", "%2Fetc%2Fpasswd", "a.png%00"):
        path = f"{api.v3}/sessions/{found[0].session_id}/media/{name}"
        assert api.get(path).status_code == 404


def test_a_session_that_has_said_nothing_yet(api):
    made = api.post(f"{api.v3}/sessions", json={"recorded": True, "title": "t"}).json()
    answer = api.get(f"{api.v3}/sessions/{made['session_id']}/trajectory")
    assert [step["source"] for step in answer.json()["steps"]] == ["system"]


def test_who_may_not_see_a_session_gets_no_trace_of_it(api):
    path = take_in(api, user())
    assert api.get(f"{path}/trajectory", key="api:stranger").status_code == 404
    assert api.get(f"{path}/trajectory", key="").status_code == 401
    assert api.get(f"{path}/trajectory", key=api.key("api", wanted=["run"])).status_code == 403
    assert api.get(f"{path}/trajectory?format=html").json() == {"error": "invalid_format"}
