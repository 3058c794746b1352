"""What tests of workers ask for."""

import pytest

from devices.hands import Hands
from people import Org
from stenograph.storage.database import Database
from stenograph.storage.sealing import Sealer


@pytest.fixture
def hands(database: Database, org: Org, sealer: Sealer) -> Hands:
    """A database with people in it, and what makes workers and calls; on both engines."""
    return Hands(database, org.owner, sealer)
