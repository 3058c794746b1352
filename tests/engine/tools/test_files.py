"""`read`, `write` and `edit`: what they give, and what they leave alone."""

import asyncio
import os
import threading
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.tools.doing import do, tools
from stenograph.engine import results
from stenograph.engine.tools import edit, write
from stenograph.engine.tools.result import ToolError
from stenograph.engine.tools.workplace import Limits

TEXTS = st.text(st.sampled_from("ab\n\r\té€"), max_size=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@settings(max_examples=60, deadline=None)
@given(text=TEXTS, offset=st.integers(1, 6), limit=st.integers(1, 6))
def test_a_read_is_a_slice_of_the_lines(folder: Path, text: str, offset: int, limit: int) -> None:
    (folder / "f").write_bytes(text.encode())
    lines = text.encode().splitlines(keepends=True) if "\r" not in text else _lines(text.encode())
    result = do(tools(folder), "read", path="f", offset=offset, limit=limit, numbered=False)
    if offset > max(len(lines), 1):
        assert (result.status, result.text) == ("failed", f"f has only {len(lines)} lines")
    else:
        assert result.text.encode() == b"".join(lines[offset - 1 :][:limit])
        more = len(lines) >= offset + limit
        said = (f"more lines follow; go on with offset {offset + limit}",)
        assert result.notes == (said if more else ())


def _lines(data: bytes) -> list[bytes]:
    """Lines as editors count them: ended by a newline, whatever else is in them."""
    return [one + b"\n" for one in data.split(b"\n")[:-1]] + [data.split(b"\n")[-1]][
        : bool(data.split(b"\n")[-1])
    ]


def test_lines_have_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nb\nc")
    assert do(tools(tmp_path), "read", path="f", offset=2).text == "2\tb\n3\tc"


def test_going_on_where_each_preview_says_reads_the_whole_file(tmp_path: Path) -> None:
    lines = [f"{number}: {'x' * (number % 150)}\n" for number in range(1, 701)]
    (tmp_path / "f").write_text("".join(lines))
    told, offset = "", 1
    while offset <= len(lines):
        preview = do(tools(tmp_path), "read", path="f", offset=offset).outcome().preview
        assert preview is not None
        assert len(preview) <= results.PREVIEW
        head, _, shown = preview.partition("\n") if preview[0] == "[" else ("", "", preview)
        told += "".join(line.partition("\t")[2] for line in shown.splitlines(keepends=True))
        offset = int(head.rpartition(" ")[2].rstrip("]")) if head else len(lines) + 1
    assert told == "".join(lines)


def test_a_huge_line_is_read_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("é" * 3_000_000)
    result = do(tools(tmp_path, Limits(output=100_001)), "read", path="f")
    assert (result.truncated, result.binary) == (True, False)
    assert result.text == "1\t" + "é" * 49_999
    assert result.notes == ("cut at 100001 bytes, in line 1",)


def test_a_binary_file_is_decoded_and_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x7fELF\xff\n")
    result = do(tools(tmp_path), "read", path="f", numbered=False)
    assert (result.status, result.text, result.binary) == ("completed", "\x7fELF\ufffd\n", True)


def test_a_write_makes_the_folders_and_keeps_the_permissions(tmp_path: Path) -> None:
    box = tools(tmp_path)
    assert do(box, "write", path="x/y/run.sh", content="é").text == "Created x/y/run.sh: 2 bytes"
    path = tmp_path / "x/y/run.sh"
    path.chmod(0o750)
    assert do(box, "write", path="x/y/run.sh", content="").text == "Replaced x/y/run.sh: 0 bytes"
    assert (path.stat().st_mode & 0o777, path.read_text()) == (0o750, "")
    assert os.listdir(path.parent) == ["run.sh"]


def test_a_write_through_a_link_changes_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    do(tools(tmp_path), "write", path="link", content="new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_write_does_not_reach_another_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").write_text("old")
    os.link(tmp_path / "outside", tmp_path / "root/f")
    do(tools(tmp_path / "root"), "write", path="f", content="new")
    assert (tmp_path / "outside").read_text() == "old"


def test_a_write_protected_file_stays(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o444)
    result = do(tools(tmp_path), "write", path="f", content="new")
    assert (result.status, result.text) == ("failed", "f is write-protected")
    assert (tmp_path / "f").read_text() == "old"


@settings(max_examples=80, deadline=None)
@given(
    text=st.text(st.sampled_from("ab\n"), max_size=12),
    old=st.text(st.sampled_from("ab\n"), min_size=1, max_size=3),
    new=st.text(st.sampled_from("abc"), max_size=3),
)
@example(text="aaa", old="aa", new="c")
@example(text="abab", old="ab", new="")
def test_an_edit_replaces_what_is_there_once(folder: Path, text: str, old: str, new: str) -> None:
    (folder / "f").write_text(text)
    result = do(tools(folder), "edit", path="f", old_text=old, new_text=new)
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    if len(places) == 1 and old != new:
        assert result.status == "completed"
        assert (folder / "f").read_text() == text.replace(old, new, 1)
        assert result.text == f"Edited f at line {text[: places[0]].count(chr(10)) + 1}"
    else:
        assert result.status == "failed"
        assert (folder / "f").read_text() == text


def test_an_edit_leaves_every_other_byte_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff\r\nold\r\n\x00\xfe")
    assert do(tools(tmp_path), "edit", path="f", old_text="old", new_text="new").status
    assert (tmp_path / "f").read_bytes() == b"\xff\r\nnew\r\n\x00\xfe"


def test_edits_of_one_round_do_not_undo_each_other(tmp_path: Path) -> None:
    count = 30
    (tmp_path / "f").write_text("".join(f"<{number}>" for number in range(count)))
    box = tools(tmp_path)

    async def all_at_once() -> None:
        def call(number: int) -> dict[str, str]:
            return {"path": "f", "old_text": f"<{number}>", "new_text": f"[{number}]"}

        await asyncio.gather(*(box.run("edit", call(number)) for number in range(count)))

    asyncio.run(all_at_once())
    assert (tmp_path / "f").read_text() == "".join(f"[{number}]" for number in range(count))


def test_a_file_too_large_to_edit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x" * 101)
    result = do(tools(tmp_path, Limits(file=100)), "edit", path="f", old_text="x", new_text="y")
    assert result.text == "f is larger than the 100 bytes that edit takes"


def test_a_stopped_change_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    place = tools(tmp_path).place
    stop = threading.Event()
    stop.set()
    with pytest.raises(ToolError):
        write.do(place, write.Arguments("f", "new"), stop)
    with pytest.raises(ToolError):
        edit.do(place, edit.Arguments("f", "old", "new"), stop)
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize(("field", "name"), [("content", "write"), ("new_text", "edit")])
def test_what_no_file_could_hold_is_refused(field: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    rest = {"old_text": "old"} if name == "edit" else {}
    result = do(tools(tmp_path), name, path="f", **rest, **{field: "\ud800"})
    assert result.text == f"The argument {field} is not valid Unicode"
    assert (tmp_path / "f").read_text() == "old"
