"""No log line holds a secret or a credential of this server."""

import io

import structlog
from hypothesis import given, settings

from stenograph.trajectories.redaction import Redactor, mask_log_event
from strategies.secrets import json_values, own_credentials, secret_values, without_markers


def log_line(redactor, **event):
    written = io.StringIO()
    logger = structlog.wrap_logger(
        structlog.PrintLogger(written),
        processors=[
            structlog.processors.format_exc_info,
            mask_log_event(lambda: redactor),
            structlog.processors.KeyValueRenderer(),
        ],
    )
    logger.info(**event)
    return written.getvalue()


@given(secret_values, own_credentials, json_values(secret_values | own_credentials))
@settings(max_examples=60)
def test_no_line_holds_a_secret(secret, credential, value):
    line = log_line(
        Redactor([secret], "ephemeral"), event=f"got {secret}", **{credential: value, "s": secret}
    )
    assert credential not in line
    assert repr(secret.strip())[1:-1] not in without_markers(line)


def test_tracebacks_and_objects_are_masked():
    redactor = Redactor(["hunter2"], "ephemeral")
    try:
        raise ValueError("no hunter2")
    except ValueError as error:
        line = log_line(redactor, event="failed", exc_info=True, error=error, path=("hunter2",))
    assert "hunter2" not in line
    assert "ValueError" in line


def test_registering_takes_effect_at_once():
    redactors = [Redactor([], "ephemeral")]
    process = mask_log_event(lambda: redactors[-1])
    assert process(None, "info", {"event": "swordfish", "n": 1}) == {"event": "swordfish", "n": 1}
    redactors.append(Redactor(["swordfish"], "ephemeral"))
    assert process(None, "info", {"event": "swordfish"}) == {"event": "[redacted-secret]"}
