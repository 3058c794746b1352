"""`glob` and `grep`: what they find, in bounded work."""

import glob as stdlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tools.doing import do, tools
from stenograph.engine.tools.workplace import Limits

FILES = ("a.py", "b.md", "ab.py", ".hidden.py", "x/a.py", "x/y/a.md", "x/y/[z].py", "x/.h/b.py")
PIECES = st.sampled_from(("*", "?", "**", "a", "b", ".py", ".md", "/", "x", "y", "[ab]", "[!a]"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tree")
    for number, name in enumerate(FILES):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(f"one {number}\nTwo {name}\n\nthree\n")
    return made


def listed(folder: Path, **arguments: Any) -> list[str]:
    result = do(tools(folder), "glob", **arguments)
    assert result.status == "completed", result
    return result.text.splitlines()


@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(PIECES, min_size=1, max_size=6))
def test_a_pattern_finds_what_pythons_glob_finds(folder: Path, pieces: list[str]) -> None:
    pattern = re.sub("//+", "/", "".join(pieces)).strip("/") or "*"
    # Three stars and more are not of Python's language.
    pattern = re.sub(r"\*{3,}", "**", pattern)
    there = stdlib.glob(pattern, root_dir=folder, recursive=True, include_hidden=True)
    # It lists the folder before `/**` as well, there or not, and marks it by a slash.
    expected = {name for name in there if name and not name.endswith("/")}
    found = do(tools(folder), "glob", pattern=pattern)
    if found.status == "failed":
        # The folders that it names literally are not there.
        assert not expected
    else:
        assert {name.rstrip("/") for name in found.text.splitlines()} == expected


def test_folders_end_in_a_slash_and_everything_is_in_order(folder: Path) -> None:
    assert listed(folder, pattern="*") == [".hidden.py", "a.py", "ab.py", "b.md", "x/"]
    assert listed(folder, pattern="x/") == ["x/"]


def test_braces_are_alternatives(folder: Path) -> None:
    assert listed(folder, pattern="{a,b}.{py,md}") == ["a.py", "b.md"]
    assert listed(folder, pattern="{x/a,x/**/a}.{md,py}") == ["x/a.py", "x/y/a.md"]
    assert do(tools(folder), "glob", pattern="{a").status == "failed"


def test_a_folder_to_start_from_may_be_given_in_three_ways(folder: Path) -> None:
    expected = ["x/y/[z].py", "x/y/a.md"]
    assert listed(folder, pattern="*", path="x/y") == expected
    assert listed(folder, pattern="x/y/*") == expected
    assert listed(folder, pattern=f"{folder}/x/y/*") == expected


def test_a_listing_is_bounded_and_says_so(folder: Path) -> None:
    result = do(tools(folder, Limits(found=2)), "glob", pattern="**/*.py")
    assert (len(result.text.splitlines()), result.truncated) == (2, True)
    result = do(tools(folder, Limits(entries=3)), "glob", pattern="**/*.md")
    assert result.truncated
    assert "only the first 3 files and folders were looked at" in result.notes
    every = len(listed(folder, pattern="**"))
    assert not do(tools(folder, Limits(found=every)), "glob", pattern="**").truncated


def test_what_git_keeps_is_left_out_unless_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("secret")
    assert listed(tmp_path, pattern="**") == [".git/"]
    assert listed(tmp_path, pattern=".git/*") == [".git/config"]


def test_links_to_folders_are_not_gone_into(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/up").symlink_to("..")
    assert listed(tmp_path, pattern="**") == ["a/", "a/up"]


def test_names_that_are_no_text_are_listed(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xffb")).write_text("x")
    (tmp_path / "new\nline").write_text("x")
    assert do(tools(tmp_path), "glob", pattern="a?b").text == "a\ufffdb\n"
    assert do(tools(tmp_path), "glob", pattern="*").text == "a\ufffdb\nnew\nline\n"
    assert do(tools(tmp_path), "grep", pattern="x").text == "a\ufffdb:1:x\nnew\nline:1:x\n"


def test_a_tree_deeper_than_any_path_is_walked(tmp_path: Path) -> None:
    name, depth = "d" * 250, 20
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(os.open("end", os.O_CREAT, dir_fd=fd))
    os.close(fd)
    assert listed(tmp_path, pattern="**/end") == [f"{name}/" * depth + "end"]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(("one", "t.*e$", "^T", "(?i)two .*py", "^$", r"\d", "[ab]", "x|1", "é")))
def test_grep_finds_the_lines_that_pythons_re_finds(folder: Path, pattern: str) -> None:
    expected = [
        f"{name}:{number}:{line}"
        for name in FILES
        for number, line in enumerate((folder / name).read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]
    found = do(tools(folder), "grep", pattern=pattern).text.splitlines()
    assert sorted(found) == sorted(expected)


def test_grep_keeps_to_names_case_and_folders(folder: Path) -> None:
    def lines(**arguments: Any) -> list[str]:
        return do(tools(folder), "grep", **arguments).text.splitlines()

    assert lines(pattern="two", glob="a.*") == []
    assert lines(pattern="two", glob="a.*", ignore_case=True) == [
        "a.py:2:Two a.py",
        "x/a.py:2:Two x/a.py",
        "x/y/a.md:2:Two x/y/a.md",
    ]
    assert lines(pattern="Two", glob="y/*", path="x") == [
        "x/y/[z].py:2:Two x/y/[z].py",
        "x/y/a.md:2:Two x/y/a.md",
    ]
    assert lines(pattern="Two", path="x/a.py") == ["x/a.py:2:Two x/a.py"]


def test_grep_is_bounded_and_says_so(folder: Path) -> None:
    result = do(tools(folder), "grep", pattern="one", limit=3)
    assert (len(result.text.splitlines()), result.truncated) == (3, True)
    exactly = do(tools(folder), "grep", pattern="one", limit=len(FILES))
    assert (len(exactly.text.splitlines()), exactly.truncated) == (len(FILES), False)
    assert do(tools(folder, Limits(found=1)), "grep", pattern="one").truncated
    assert do(tools(folder), "grep", pattern="nowhere").notes == ("nothing matches",)


def test_long_lines_are_cut_and_binary_files_left_out(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("é" * 200_000 + "needle\nneedle\n")
    (tmp_path / "binary").write_bytes(b"needle\x00")
    (tmp_path / "odd").write_bytes(b"\xff needle\n")
    found = do(tools(tmp_path), "grep", pattern="needle").text.splitlines()
    assert found[0].startswith("long:1:é")
    assert len(found[0]) < 420
    assert found[1:] == ["long:2:needle", "odd:1:\ufffd needle"]


@pytest.mark.parametrize("pattern", ["(", "a**", r"(a)\1", "(?=a)", "\ud800", "((a{900}){900})"])
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused(
    pattern: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("a")
    result = do(tools(tmp_path), "grep", pattern=pattern)
    assert result.status == "failed"
    assert result.text.startswith("The pattern is no")


def test_a_pattern_that_undoes_others_is_matched_at_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 50_000 + "\n")
    result = do(tools(tmp_path, Limits(timeout=20)), "grep", pattern="(a+)+b|(a|aa)*c$")
    assert (result.status, result.notes) == ("completed", ("nothing matches",))


def test_no_line_is_cut_within_a_secret(tmp_path: Path) -> None:
    secret = "sesame-" + "0123456789" * 5
    (tmp_path / "f").write_text("x" * 380 + secret + "y" * 1_000)
    shown = do(tools(tmp_path, KEY=secret), "grep", pattern="x").text
    assert shown == f"f:1:{'x' * 380}\n"
