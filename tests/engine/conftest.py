"""What tests of the engine ask for."""

from pathlib import Path

import pytest

from engine.driving import Driven
from people import Org
from stenograph.engine.engine import Place
from stenograph.storage.database import Database


@pytest.fixture
def driven(database: Database, org: Org, tmp_path: Path) -> Driven:
    """A database with people in it, and an engine for it; each test runs on both engines."""
    return Driven(database, org.owner, Place(f"sqlite:///{tmp_path / 'engine.db'}"))
