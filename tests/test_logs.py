"""What the server writes of itself holds no secret and no key, whoever says it."""

import json
import subprocess
import sys

import pytest

SAY = """
import logging, sys, structlog
from pathlib import Path
from stenograph import logs
from stenograph.settings import Settings
from stenograph.storage.sealing import Sealer, plain_texts

logs.configure(Settings(data=Path("."), log_format=sys.argv[1]))
secret, keys = 'hunter2 "quoted"', ["reason_", "ara_", "sk-steno-v1-"]
keys = [key + "4f9aB2cQ7xL0mN5pR8tV1wY3zE6gH9jK" for key in keys]
plain_texts.set(set())
Sealer(bytes(32)).seal(secret, "for a test")
try:
    raise RuntimeError(f"no {secret} for {keys[0]}")
except RuntimeError:
    structlog.get_logger().error(f"ours: {secret}", keys=keys, exc_info=True)
    logging.getLogger("asyncio").exception("theirs: %s %s", secret, keys[1])
    logging.getLogger("other").warning("plain")
structlog.get_logger().info(keys[2])
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_every_line_is_masked(form):
    done = subprocess.run(
        [sys.executable, "-c", SAY, form], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    assert "hunter2" not in done.stderr
    assert "4f9aB2cQ7xL0" not in done.stderr
    for words in ("ours: [redacted-secret]", "theirs: [redacted-secret]", "plain", "RuntimeError"):
        assert words in done.stderr
    if form == "json":
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert [line["level"] for line in lines] == ["error", "error", "warning", "info"]
        assert all("timestamp" in line for line in lines)
