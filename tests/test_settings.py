"""Settings: where each comes from, and which wins."""

from dataclasses import fields
from pathlib import Path

import pytest

from stenograph.errors import InvalidInputError
from stenograph.settings import Settings, from_environment


def test_every_setting_can_come_from_the_environment():
    for setting in fields(Settings):
        if setting.name == "database":
            continue
        text, meant = {int: ("7", 7), bool: ("1", True), Path: ("/seven", Path("/seven"))}.get(
            setting.type, ("seven", "seven")
        )
        found = getattr(from_environment({f"STENO_{setting.name.upper()}": text}), setting.name)
        assert found == meant


def test_the_database_has_the_name_that_others_use():
    assert (
        from_environment({"STENO_DATABASE_URL": "postgresql://h/d"}).database == "postgresql://h/d"
    )


def test_an_option_wins_and_an_empty_variable_is_none():
    assert from_environment({"STENO_PORT": "1"}, port=2).port == 2
    assert from_environment({"STENO_PORT": "1"}, port=None).port == 1
    assert from_environment({"STENO_PORT": "", "STENO_KEY": ""}) == from_environment({})


def test_the_data_folder_is_absolute_and_at_home_by_default(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert from_environment({}).data == Path("/home/ada/.stenograph")
    assert from_environment({}, data=Path("~/x")).data == Path("/home/ada/x")
    assert from_environment({}, data=Path("x")).data == Path.cwd() / "x"


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "٣", " 1"])
def test_a_number_that_is_none_is_named(text):
    with pytest.raises(InvalidInputError, match="STENO_MAX_BODY_BYTES"):
        from_environment({"STENO_MAX_BODY_BYTES": text})


@pytest.mark.parametrize(
    ("text", "on"), [("1", True), ("true", True), ("0", False), ("false", False), ("", False)]
)
def test_a_switch_is_on_or_off(text, on):
    assert from_environment({"STENO_MCP_STDIO": text}).mcp_stdio is on


def test_a_switch_that_is_neither_is_named():
    with pytest.raises(InvalidInputError, match="STENO_MCP_STDIO"):
        from_environment({"STENO_MCP_STDIO": "yes please"})
