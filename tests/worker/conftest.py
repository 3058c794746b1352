"""Tests of this folder are coroutines where that is easier."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The loop that the worker runs on."""
    return "asyncio"
