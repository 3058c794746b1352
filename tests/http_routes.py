"""Every route that is served, for tests that hold for each of them."""

import pytest

from stenograph.http import server

NOWHERE = "00000000-0000-7000-8000-000000000000"


def fill(path: str, org: str = "default") -> str:
    """Put ids that name nothing into a route's path."""
    for name in server._split(path):
        if name.startswith("{"):
            path = path.replace(name, org if name == "{orgId}" else NOWHERE)
    return path


def every_route() -> list:
    """(family, prefix, route), for `parametrize`."""
    return [
        pytest.param(family, prefix, route, id=f"{family}-{route.id}")
        for family, (prefix, routes) in server.families().items()
        for route in routes
    ]
