"""The toolbox: what it offers, whom it lets, and that whatever goes wrong is a result."""

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from engine.tools.doing import ALL, do, tools
from stenograph.engine.toolbox import ToolOutcome
from stenograph.engine.tools.result import Result
from stenograph.engine.tools.toolbox import TOOLS, LocalToolbox, local
from stenograph.engine.tools.workplace import Limits, Permissions

NAMES = ["bash", "read", "write", "edit", "glob", "grep"]


def call(box: LocalToolbox, name: str, resumed: bool = False, **arguments: Any) -> ToolOutcome:
    return asyncio.run(box.call(name, arguments, resumed=resumed))


@pytest.mark.parametrize(
    ("permissions", "offered"),
    [
        (ALL, NAMES),
        (Permissions(), ["read", "glob", "grep"]),
        (Permissions(read=False, write=True), ["write"]),
        (Permissions(read=True, write=True), ["read", "write", "edit", "glob", "grep"]),
        (Permissions(read=False, execute=True), ["bash"]),
        (Permissions(read=False), []),
    ],
)
def test_a_root_offers_what_its_permissions_allow_and_refuses_the_rest(
    permissions: Permissions, offered: list[str], tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("old")
    box = local(tmp_path, permissions, {})
    assert [spec.name for spec in box.specs] == offered
    given = {
        "bash": {"command": "echo"},
        "read": {"path": "f"},
        "write": {"path": "f", "content": "old"},
        "edit": {"path": "f", "old_text": "old", "new_text": "new"},
        "glob": {"pattern": "*"},
        "grep": {"pattern": "old"},
    }
    for name in NAMES:
        outcome = call(box, name, **given[name])
        assert (outcome.status == "completed") == (name in offered)
        if name not in offered:
            assert outcome.output.startswith("The root folder may not be used to ")


def test_definitions_are_of_openais_shape(tmp_path: Path) -> None:
    for spec in tools(tmp_path).specs:
        definition = json.loads(json.dumps(spec.definition))
        assert definition["type"] == "function"
        function = definition["function"]
        assert set(function) == {"name", "description", "parameters"}
        schema = function["parameters"]
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert "$ref" not in json.dumps(schema)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read", {}, "Object missing required field `path`"),
        ("read", {"path": 1}, "Expected `str`, got `int` - at `$.path`"),
        ("read", {"path": "f", "offset": 0}, "Expected `int` >= 1 - at `$.offset`"),
        ("read", {"path": "f", "lines": 1}, "Object contains unknown field `lines`"),
        ("read", {"path": ""}, "Expected `str` of length >= 1 - at `$.path`"),
        ("write", {"path": "f", "content": None}, "Expected `str`, got `null` - at `$.content`"),
        ("edit", {"path": "f", "old_text": "a"}, "Object missing required field `new_text`"),
        ("bash", {"command": ["ls"]}, "Expected `str`, got `array` - at `$.command`"),
        ("bash", {"command": "a", "timeout_seconds": 0}, "at `$.timeout_seconds`"),
        ("grep", {"pattern": "a", "limit": "3"}, "Expected `int`, got `str` - at `$.limit`"),
    ],
)
def test_arguments_that_are_not_right_are_named_and_contradict_the_schema(
    name: str, arguments: dict[str, Any], said: str, tmp_path: Path
) -> None:
    box = tools(tmp_path)
    outcome = call(box, name, **arguments)
    assert outcome.status == "failed"
    assert outcome.output.startswith(f"The arguments of {name} are not right: ")
    assert said in outcome.output
    schema = next(spec.parameters for spec in box.specs if spec.name == name)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(arguments, schema)


def test_an_unknown_tool_is_told_the_known_ones(tmp_path: Path) -> None:
    outcome = call(tools(tmp_path), "read_file", path="f")
    assert outcome.status == "failed"
    assert outcome.output == f"There is no tool named 'read_file'; there are: {', '.join(NAMES)}"


def test_a_root_that_vanishes_fails_each_call_and_serves_again_when_it_is_back(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    box = tools(root)
    shutil.rmtree(root)
    for name, arguments in (
        ("bash", {"command": "echo"}),
        ("read", {"path": "f"}),
        ("write", {"path": "f", "content": ""}),
        ("glob", {"pattern": "*"}),
        ("grep", {"pattern": "a"}),
    ):
        outcome = call(box, name, **arguments)
        assert outcome.status == "failed"
        assert outcome.output == "The root folder cannot be opened: No such file or directory"
    assert not root.exists()
    root.mkdir()
    assert call(box, "write", path="f", content="").status == "completed"


def test_a_root_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    box = tools(root)
    root.rmdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/f").write_text("secret")
    root.symlink_to("other")
    for name, arguments in (("read", {"path": "f"}), ("bash", {"command": "cat f"})):
        outcome = call(box, name, **arguments)
        assert outcome.status == "failed"
        assert "secret" not in outcome.output


def test_a_tool_that_raises_is_a_failed_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Result:
        raise KeyError("a secret of the inside")

    from stenograph.engine.tools import toolbox

    faulty = {tool.name: replace(tool, does=broken) for tool in TOOLS}
    monkeypatch.setattr(toolbox, "_BY_NAME", faulty)
    outcome = call(tools(tmp_path), "read", path="f")
    assert outcome.status == "failed"
    assert outcome.output == "read failed by a fault of its own: KeyError"


def test_a_search_that_takes_too_long_is_timed_out(tmp_path: Path) -> None:
    for number in range(2_000):
        (tmp_path / f"{number}").touch()
    box = tools(tmp_path, Limits(timeout=1e-4))
    result = do(box, "grep", pattern="a")
    assert (result.status, result.text) == ("timed_out", "Timed out after 0.0001 seconds")


def test_a_call_begun_before_is_repeated_only_where_that_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    box = tools(tmp_path)
    again = True
    assert call(box, "bash", again, command="touch g").status == "uncertain"
    edited = call(box, "edit", again, path="f", old_text="old", new_text="new")
    assert edited.status == "uncertain"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "old"
    assert call(box, "write", again, path="f", content="new").status == "completed"
    assert call(box, "read", again, path="f").output == "1\tnew"
