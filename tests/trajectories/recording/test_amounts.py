"""Numbers that no agent ever used, but a log may hold: kept as they came, and harmless."""

import json
import re

import pytest

from exports import exported, exported_bytes, row_id
from stenograph.errors import InvalidInputError
from stenograph.sessions import session
from stenograph.trajectories.importers.discovery import read_bytes
from stenograph.trajectories.recording.record import record
from trajectories.atif.documents import agent, document, user


def take_in(database, org, *metrics):
    data = json.dumps(document(user(), *(agent(metrics=m) for m in metrics))).encode()
    (draft,) = read_bytes(data)
    return database.write(lambda tx: record(tx, org.owner, draft))[0].session_id


@pytest.mark.parametrize("count", [2**40 + 1, 2**63 - 1, 2**63, 2**70])
def test_sums_of_absurd_counts_break_no_reading(database, org, count):
    metrics = {"prompt_tokens": count, "completion_tokens": count, "cost_usd": 1e308}
    session_id = take_in(database, org, metrics, metrics, {"prompt_tokens": 3})
    found = exported(database, session_id)
    assert [s["metrics"] for s in found["steps"][1:]] == [metrics, metrics, {"prompt_tokens": 3}]
    assert found["final_metrics"]["total_prompt_tokens"] == 2 * count + 3
    with database.read() as tx:
        seen = session.find(tx, org.owner, session_id)
        account = session.details(tx, [seen])[row_id(database, session_id)].usage
    assert (account.input_tokens, account.cost_usd) == (3, None)


@pytest.mark.parametrize(
    "metrics",
    [
        {"prompt_tokens": 10**39},
        {"prompt_token_ids": [10**39]},
        {"completion_token_ids": [-(10**39)]},
    ],
)
def test_a_number_that_would_be_masked_is_refused(database, org, metrics):
    with pytest.raises(InvalidInputError, match="out of range"):
        take_in(database, org, metrics)


def test_no_sum_of_counts_is_an_unbroken_run_of_40(database, org):
    session_id = take_in(database, org, *[{"prompt_tokens": 2**96}] * 3)
    data = exported_bytes(database, session_id, "standard")
    assert re.search(rb"[A-Za-z0-9_-]{40}", data) is None
