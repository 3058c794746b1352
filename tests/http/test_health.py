"""`GET /healthz`."""

import stenograph
from stenograph.storage import migrate


def test_health_needs_no_key_and_names_database_and_schema(api):
    answer = api.get("/healthz", key="")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ok",
        "version": stenograph.__version__,
        "database": api.database.dialect,
        "schema": migrate.head(),
    }


def test_self_names_the_key(api):
    answer = api.get("/v3/self")
    assert answer.status_code == 200
    assert answer.json()["org_slug"] == "default"
    assert "sessions:read" in answer.json()["scopes"]
