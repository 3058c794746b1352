"""docs/client.md does what it says: its examples are run in order, against a server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.test_serve import Server

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path / "data")
    yield started
    assert started.stop()[0] == 0


def test_the_examples_work(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("STENO_URL", server.url)
    monkeypatch.setenv("STENO_MEMBER_KEY", server.keys["member"])
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example in EXAMPLES:
        exec(compile(example, str(PAGE), "exec"), names)
    said = capsys.readouterr().out
    assert len(EXAMPLES) == 11
    assert "You said: What is a quail?" in said
    # What is told live is heard as far as one listens in time, to the turn's end in any case.
    assert names["frame"].data["variant_status"] == "completed"  # type: ignore[attr-defined]
    assert "turn_status" in said
    assert "r1 completed You said: Think it over." in said
    assert (tmp_path / "cursor").read_text().startswith("Y3ZlaTo")
