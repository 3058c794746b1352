"""Who reads waits for no writer and hinders none: no GET takes a write lock."""

import re
import sqlite3

import pytest

from http_routes import every_route, record_samples
from standing import CASES, set_up
from stenograph.accounts.scopes import SCOPES

#: What writes, or holds rows until the end of its transaction.
WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|LOCK|FOR (NO KEY )?UPDATE|FOR SHARE|nextval)\b")
QUERIES = {name: case.query for name, case in CASES.items()}
GETS = [(family, prefix, it) for family, prefix, it in every_route() if it.method == "GET"]


@pytest.fixture
def paths(api, database, org):
    """The path of each GET, with ids that name something where there is something."""
    ids = record_samples(database, org.owner) | set_up(database, org).ids
    reason = api.post(f"{api.v3}/reasons", json={"name": "Mine"}).json()["id"]
    ids |= {"reasonId": reason, "name": "none.png", "mcpServerId": "none", "deviceId": "none"}
    found = {}
    for _, prefix, route in GETS:
        path = prefix + route.path + QUERIES.get(route.id, "")
        for name, value in ids.items():
            path = path.replace("{" + name + "}", value)
        assert "{" not in path
        found[route.id] = path
    return found


#: What the scene has nothing of.
NOT_THERE = {"getSessionMedia", "getMcpServer", "getDevice", "getRegenerationReceipt"}


def read(api, paths, route, family, key):
    answer = api.get(paths[route.id], key="member" if family == "agent" else key)
    assert answer.status_code == (404 if route.id in NOT_THERE else 200), route.id


def test_no_read_writes_or_holds_anything(api, database, paths):
    key = api.key("api", wanted=SCOPES)
    said: list[str] = []
    for family, _, route in GETS:
        said.clear()
        database.observer = said.append
        read(api, paths, route, family, key)
        database.observer = None
        assert said, route.id
        assert [sql for sql in said if WRITES.search(sql)] == [], route.id


@pytest.mark.parametrize("database_location", ["sqlite"], indirect=True)
def test_reads_go_on_while_somebody_writes(api, database_location, paths):
    key = api.key("api", wanted=SCOPES)
    writer = sqlite3.connect(database_location.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    for family, _, route in GETS:
        read(api, paths, route, family, key)
    writer.close()
