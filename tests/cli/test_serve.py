"""`steno serve`: a real process on a real port."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

STENO = [sys.executable, "-c", "from stenograph.app import main; main()"]


class Server:
    """A running `steno serve --port 0`."""

    def __init__(self, data: Path, *options: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [*STENO, "serve", "--port", "0", "--data", str(data), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr and self.process.stderr.read()
        self.said = json.loads(line)
        self.url = self.said["url"]
        self.keys = json.loads(Path(self.said["keys"]).read_text())

    def get(self, path: str, key: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.keys[key]}"} if key else {}
        return httpx.get(self.url + path, headers=headers)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture(params=["sqlite", "postgres"])
def options(request):
    """The options that name a database of either engine without a schema."""
    if request.param == "sqlite":
        return []
    return ["--database", request.getfixturevalue("empty_postgres")().url]


def test_it_starts_from_nothing_answers_with_its_keys_and_stops_when_told(options, tmp_path):
    data = tmp_path / "data"
    for first, number in ((True, signal.SIGTERM), (False, signal.SIGINT)):
        server = Server(data, *options)
        assert server.said["first_start"] is first
        assert server.get("/healthz").json()["status"] == "ok"
        assert server.get("/v3/self", "api").json()["org_slug"] == "default"
        assert server.get("/v3/self", "member").status_code == 401
        assert server.get("/docs").status_code == 200
        assert server.stop(number) == (0, "", "")
    assert stat.S_IMODE((data / "keys.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "path", ["/v3/%ff", "/v3/organizations/%ed%a0%80/x", "/v3/%00", "/%2e%2e/%2e%2e/etc/passwd",
             "/v3/self?x=%ff", "/agent_api/v1/%f0%9f%98%80", "//v3//self", "/v3/" + "a" * 20_000],
)  # fmt: skip
def test_strange_paths_get_an_answer_in_shape(server, path):
    answer = server.get(path, "api")
    assert answer.status_code in (200, 400, 404, 414)
    if answer.status_code != 414:
        assert "error" in answer.json() or answer.status_code == 200


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("server") / "data")
    yield started
    assert started.stop() == (0, "", "")


def test_head_has_no_body_and_the_length_of_get(server):
    head = httpx.head(server.url + "/healthz")
    assert head.status_code == 200
    assert head.content == b""
    assert int(head.headers["content-length"]) == len(server.get("/healthz").content)


def test_a_connection_serves_many_requests(server):
    with httpx.Client(base_url=server.url) as client:
        for _ in range(50):
            assert client.get("/healthz").status_code == 200


def test_a_taken_port_is_one_clear_line(server, tmp_path):
    port = server.url.rsplit(":", 1)[1]
    done = subprocess.run(
        [*STENO, "serve", "--port", port, "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"steno: Cannot listen on 127.0.0.1:{port}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("STENO_PORT", "70000", "STENO_PORT must be 0 to 65535"),
        ("STENO_PORT", "http", "STENO_PORT must be a whole number"),
        ("STENO_LOG_LEVEL", "loud", "The log level must be one of"),
        ("STENO_LOG_FORMAT", "xml", "The log format must be one of"),
        ("STENO_KEY", "short", "The sealing key must be base64 of 32 bytes"),
        ("STENO_ORGANIZATION", "Not A Slug", "A slug is"),
        ("STENO_HOST", "no-such-host.invalid", "Cannot listen on no-such-host.invalid"),
    ],
)
def test_a_bad_setting_is_one_clear_line(tmp_path, variable, value, says):
    done = subprocess.run(
        [*STENO, "serve", "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"STENO_PORT": "0", variable: value},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"steno: {says}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0"])
def test_the_printed_address_can_be_reached(tmp_path, host):
    server = Server(tmp_path, "--host", host)
    assert server.get("/healthz").status_code == 200
    server.stop()


def test_two_processes_serve_one_database(tmp_path):
    started = []
    together = [
        threading.Thread(target=lambda: started.append(Server(tmp_path / "data"))) for _ in range(2)
    ]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert sorted(s.said["first_start"] for s in started) == [False, True]
    for server in started:
        assert server.get("/v3/self", "api").status_code == 200
    assert [s.stop()[0] for s in started] == [0, 0]


def test_a_server_that_is_told_to_stop_answers_what_it_was_asked(tmp_path):
    server = Server(tmp_path / "data")
    headers = {"Authorization": f"Bearer {server.keys['api']}"}
    v3 = f"{server.url}/v3/organizations/default"
    body = {"prompt": "Wait", "mode": "standard", "recorded": True}
    session = httpx.post(f"{v3}/sessions", headers=headers, json=body).json()["session_id"]
    answers = []

    def poll():
        url = f"{v3}/sessions/{session}/events"
        first = httpx.get(url, headers=headers, params={"limit": 500}).json()["next_seq"]
        asked.set()
        query = {"after_seq": first, "wait_ms": 2000}
        answers.append(httpx.get(url, headers=headers, params=query, timeout=30))

    asked = threading.Event()
    polling = threading.Thread(target=poll)
    polling.start()
    asked.wait(10)
    time.sleep(0.5)
    assert server.stop()[0] == 0
    polling.join()
    assert answers[0].status_code == 200


def test_settings_come_from_the_environment_and_options_win(tmp_path):
    server = Server(
        tmp_path / "a",
        STENO_DATA=str(tmp_path / "b"),
        STENO_ORGANIZATION="acme",
        STENO_V3_REQUESTS_PER_MINUTE="2",
    )
    assert (tmp_path / "a").is_dir()
    assert not (tmp_path / "b").exists()
    statuses = [server.get("/v3/self", "api").status_code for _ in range(3)]
    # A minute may turn in between, but not twice.
    assert statuses in ([200, 200, 429], [200, 200, 200])
    assert server.keys["organization"] == "acme"
    server.stop()
