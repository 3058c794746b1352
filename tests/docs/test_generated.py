"""The written documents say what the code says."""

import importlib.util
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from stenograph.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_schema_is_that_of_a_migrated_database(generate: ModuleType) -> None:
    assert (ROOT / "docs" / "schema.md").read_text("utf-8") == generate.schema(), "make docs"


def test_the_settings_are_those_of_the_code(generate: ModuleType) -> None:
    assert (ROOT / "docs" / "settings.md").read_text("utf-8") == generate.environment(), "make docs"


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_every_setting_has_its_sentence(generate: ModuleType, name: str) -> None:
    variable = "DATABASE_URL" if name == "database" else name.upper()
    lines = generate.environment().splitlines()
    (row,) = [line.split(" | ") for line in lines if f"`STENO_{variable}`" in line]
    assert row[-1].rstrip(" |").endswith(".")
