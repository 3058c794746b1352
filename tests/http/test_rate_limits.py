"""Rate limits of both families: who is counted, what is answered, and when it ends."""

from dataclasses import replace

import pytest

from stenograph.errors import TooManyRequestsError
from stenograph.http import server
from stenograph.http.context import Ctx
from stenograph.http.rate_limits import Windows
from stenograph.http.route import ANY_KEY, get

V3_429 = {
    "error": {
        "type": "rate_limited",
        "message": "This API key exceeded its request-rate limit",
    }
}


@pytest.fixture
def limited(api, monkeypatch):
    """Serve two kinds of resource in the Agent API and one route in v3, three requests a minute;
    one address may send six."""

    async def look(ctx: Ctx) -> str:
        """Look."""
        return "seen"

    agent = [
        get(f"/{noun}", id=noun, tag=noun, answer=str, requests=requests)(look)
        for noun, requests in (("birds", None), ("bees", None), ("bears", 1))
    ]
    v3 = [get("/look", id="look", tag="Account", scope=ANY_KEY, answer=str)(look)]
    monkeypatch.setattr(server, "AGENT_API", [agent])
    monkeypatch.setattr(server, "V3", [v3])
    settings = replace(
        api.settings,
        agent_requests_per_minute=3,
        agent_address_factor=2,
        v3_requests_per_minute=3,
    )
    opened = type(api)(api.database, api.org, settings, api.sealer)
    opened.app.gate.windows = Windows(clock=lambda: 60_000_017.5)
    yield opened
    opened.close()


def statuses(api, path, times, key=None):
    return [api.get(path, key=key).status_code for _ in range(times)]


def test_a_v3_key_over_its_rate_is_told_when_to_come_back(limited):
    assert statuses(limited, "/v3/look", 5) == [200, 200, 200, 429, 429]
    refused = limited.get("/v3/look")
    assert refused.json() == V3_429
    assert refused.headers["Retry-After"] == "43"
    assert statuses(limited, "/v3/look", 1, key="api:admin") == [200], "each key has its own"


def test_the_v3_rate_is_checked_after_the_key_and_before_the_rest(limited):
    statuses(limited, "/v3/look", 4)
    assert limited.get("/v3/look", key="reason_unknown").status_code == 401


def test_a_caller_of_the_agent_api_has_a_budget_for_each_kind_of_resource(limited):
    assert statuses(limited, "/agent_api/v1/birds", 4) == [200, 200, 200, 429]
    refused = limited.get("/agent_api/v1/birds")
    assert refused.json()["error"]["code"] == "rate_limited"
    assert refused.headers["Retry-After"] == "60"
    assert statuses(limited, "/agent_api/v1/bees", 1) == [200]


def test_a_kind_of_resource_may_have_a_budget_of_its_own(limited):
    assert statuses(limited, "/agent_api/v1/bears", 2) == [200, 429]


def test_the_address_is_charged_for_all_its_callers(limited):
    path = "/agent_api/v1/birds"
    assert statuses(limited, path, 3) == [200, 200, 200]
    assert statuses(limited, path, 3, key="member:admin") == [200, 200, 200]
    assert statuses(limited, path, 1, key="member:member") == [429]


def test_who_has_no_key_is_counted_by_address_and_over_it_told_429_before_401(limited):
    path = "/agent_api/v1/birds"
    assert statuses(limited, path, 4, key="") == [401, 401, 401, 429]
    # A key of the other plane is counted as itself.
    assert statuses(limited, "/agent_api/v1/bees", 4, key="executor") == [401, 401, 401, 429]


def test_a_new_minute_begins_anew():
    moments = iter([119.0, 119.2, 119.9, 120.0, 120.1])
    windows = Windows(clock=lambda: next(moments))
    assert [windows.take("k", 2) for _ in range(5)] == [0, 0, 1, 0, 0]


def test_the_wait_is_whole_seconds_and_at_least_one():
    for moment, wait in ((60.0, 60), (60.5, 60), (61.0, 59), (119.0, 1), (119.999, 1)):
        windows = Windows(clock=lambda moment=moment: moment)
        with pytest.raises(TooManyRequestsError) as error:
            windows.charge("k", 0, "Too many")
        assert error.value.retry_after == wait
