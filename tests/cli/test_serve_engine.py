"""`steno serve` answers what is said to it: a real process, asked over HTTP."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.test_serve import Server

#: Seconds after which an answer that should be there is a failed test.
PATIENCE = 30


@pytest.fixture(params=["sqlite", "postgres"])
def options(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "sqlite":
        return []
    return ["--database", request.getfixturevalue("empty_postgres")().url]


class Talk:
    """What a person does over HTTP."""

    def __init__(self, server: Server) -> None:
        self.url = f"{server.url}/v3/organizations/default"
        self.headers = {"Authorization": f"Bearer {server.keys['api']}"}

    def get(self, path: str) -> Any:
        return httpx.get(self.url + path, headers=self.headers).json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        answer = httpx.post(self.url + path, headers=self.headers, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def start(self, prompt: str, **more: Any) -> str:
        return str(self.post("/sessions", {"prompt": prompt, **more})["session_id"])

    def session(self, session_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/sessions/{session_id}")
        return found

    def ended(self, session_id: str) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while (found := self.session(session_id))["status"] == "running":
            assert time.monotonic() < until, found
            time.sleep(0.05)
        return found


def test_a_session_is_answered_and_read_in_three_ways(options: list[str], tmp_path: Path) -> None:
    server = Server(tmp_path / "data", *options)
    talk = Talk(server)
    session_id = talk.start("[dev:call no_such_tool]", model="dev/thinker")
    found = talk.ended(session_id)
    assert (found["status"], found["outcome"]) == ("exit", "success")
    items = talk.get(f"/sessions/{session_id}/conversation")["items"]
    assert [item["kind"] for item in items] == ["prompt", "reply"]
    steps = talk.get(f"/sessions/{session_id}/trajectory")["steps"]
    assert [step["source"] for step in steps] == ["user", "agent", "agent"]
    assert steps[1]["tool_calls"][0]["function_name"] == "no_such_tool"
    talk.post(f"/sessions/{session_id}/messages", {"message": "and?"})
    talk.ended(session_id)
    items = talk.get(f"/sessions/{session_id}/conversation")["items"]
    assert [item["content"] for item in items][2:] == ["and?", "You said: and?"]
    assert server.stop()[0] == 0


def test_the_other_server_answers_when_the_first_is_killed(
    options: list[str], tmp_path: Path
) -> None:
    first, second = (Server(tmp_path / "data", *options) for _ in range(2))
    session_id = Talk(first).start("[dev:slow]")
    first.process.send_signal(signal.SIGKILL)
    first.process.communicate()
    found = Talk(second).ended(session_id)
    assert (found["status"], found["outcome"]) == ("exit", "success")
    if not options:
        assert os.path.exists(tmp_path / "data" / "engine.db")
    assert second.stop()[0] == 0
