"""The retention policy (agent-api.md 6): administrators read and set it, nobody else."""

import pytest

PATH = "/api/v1/admin/account/retention"
NAME = "execution_details_retention_days"


def body(days):
    return {"account": {NAME: days}}


def test_it_is_90_days_until_somebody_sets_it(api):
    assert api.get(PATH, key="api").json() == body(90)
    for days in (180, None, 1):
        answer = api.patch(PATH, key="api:admin", json=body(days))
        assert (answer.status_code, answer.json()) == (200, body(days))
        assert api.get(PATH, key="api").json() == body(days)


def test_each_organization_has_its_own(api):
    api.patch(PATH, key="api", json=body(7))
    assert api.get(PATH, key="api:stranger").json() == body(90)


def test_members_and_agents_are_no_administrators(api):
    for key in ("api:member", "api:agent"):
        for answer in (api.get(PATH, key=key), api.patch(PATH, key=key, json=body(1))):
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                403, "administrator_required",
            )  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        ({}, 400, "parameter_missing"),
        ({"account": {}}, 400, "parameter_missing"),
        ({"account": {NAME: "x"}}, 400, "parameter_invalid"),
        (body(0), 422, "validation_failed"),
        (body(-1), 422, "validation_failed"),
        (body(36_501), 422, "validation_failed"),
    ],
)
def test_what_is_no_policy_changes_nothing(api, sent, status, code):
    answer = api.patch(PATH, key="api", json=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert api.get(PATH, key="api").json() == body(90)
