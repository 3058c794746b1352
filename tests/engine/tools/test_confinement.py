"""No path leads out of a root: not by `..`, by absolute paths, by links, or by links swapped in."""

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tools.doing import do, tools
from stenograph.engine.tools import root as roots
from stenograph.engine.tools.result import ToolError
from stenograph.engine.tools.root import OutsideError

SECRET = "what lies outside"

NAMES = ("a", "b", "c")
#: What a link may hold: names, ways up, ways round, and absolute paths in and out.
TARGETS = st.lists(st.sampled_from((*NAMES, "..", ".", "outside", "root")), min_size=1, max_size=5)
PLACES = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple)
FARMS = st.dictionaries(
    PLACES,
    st.one_of(
        st.just("file"),
        st.just("folder"),
        st.tuples(st.sampled_from(("", "{root}/", "{base}/")), TARGETS),
    ),
    max_size=8,
)
PATHS = st.tuples(
    st.sampled_from(("", "{root}/", "{base}/", "../")),
    st.lists(st.sampled_from((*NAMES, "..", ".", "outside", "secret")), min_size=1, max_size=6),
)


@contextmanager
def farm(plan: dict[tuple[str, ...], Any]) -> Iterator[Path]:
    """A folder `base` with `outside/secret` in it, and `root` with the links of the plan."""
    with tempfile.TemporaryDirectory() as made:
        # Deep down, so that a way out, were there one, would end in what is deleted again.
        base = Path(made).resolve() / "1/2/3/4/5/6/7/8/9/10/11/12"
        for folder in ("outside", "root"):
            (base / folder).mkdir(parents=True)
        (base / "outside/secret").write_text(SECRET)
        for place, what in sorted(plan.items()):
            path = base / "root" / "/".join(place)
            try:
                if not path.resolve().is_relative_to(base / "root"):
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                if what == "file":
                    path.write_text("inside")
                elif what == "folder":
                    path.mkdir()
                elif isinstance(what, tuple):
                    path.symlink_to(spelled(base, *what))
            except (OSError, RuntimeError):
                # A place below a file or in a ring of links: the plan goes on without it.
                continue
        yield base


def spelled(base: Path, start: str, names: list[str]) -> str:
    return start.format(root=base / "root", base=base) + "/".join(names)


def outside(base: Path) -> dict[str, str]:
    """All files of the base that are not the root's, with what they hold."""
    found = {}
    for folder, folders, files in os.walk(base):
        if Path(folder) == base:
            folders.remove("root")
        found |= {f"{folder}/{one}": (Path(folder) / one).read_text() for one in files}
        found |= {f"{folder}/{one}": "" for one in folders}
    return found


@settings(max_examples=60, deadline=None)
@given(plan=FARMS, path=PATHS)
def test_a_read_gives_what_the_kernel_finds_inside_and_nothing_else(
    plan: dict[tuple[str, ...], Any], path: tuple[str, list[str]]
) -> None:
    with farm(plan) as base:
        asked = spelled(base, *path)
        result = do(tools(base / "root"), "read", path=asked, numbered=False)
        assert SECRET not in result.text
        if result.status == "completed":
            assert (base / "root" / asked).read_text() == result.text


@settings(max_examples=60, deadline=None)
@given(plan=FARMS, path=PATHS)
def test_no_write_and_no_edit_changes_anything_outside(
    plan: dict[tuple[str, ...], Any], path: tuple[str, list[str]]
) -> None:
    with farm(plan) as base:
        before = outside(base)
        asked = spelled(base, *path)
        written = do(tools(base / "root"), "write", path=asked, content="new")
        do(tools(base / "root"), "edit", path=asked, old_text="new", new_text="newer")
        do(tools(base / "root"), "edit", path=asked, old_text=SECRET, new_text="gone")
        assert outside(base) == before
        if written.status == "completed":
            real = Path(os.path.realpath(base / "root" / asked))
            assert real.is_relative_to(base / "root")
            assert real.read_text() == "newer"


@settings(max_examples=40, deadline=None)
@given(plan=FARMS, path=PATHS)
def test_no_search_sees_what_lies_outside(
    plan: dict[tuple[str, ...], Any], path: tuple[str, list[str]]
) -> None:
    with farm(plan) as base:
        box = tools(base / "root")
        for start in (".", spelled(base, *path)):
            assert SECRET not in do(box, "grep", pattern="outside|inside", path=start).text
            for pattern in ("**/secret", f"{start}/secret", f"{start}/*/secret"):
                found = do(box, "glob", pattern=pattern, path=start)
                assert found.status == "failed" or not found.text


@settings(max_examples=40, deadline=None)
@given(plan=FARMS, names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
def test_what_lies_inside_is_found_through_links_that_stay_inside(
    plan: dict[tuple[str, ...], Any], names: list[str]
) -> None:
    with farm(plan) as base:
        path = base / "root" / "/".join(names)
        way = [Path(*path.parts[: depth + 1]) for depth in range(len(path.parts))]
        stays = all(not step.is_symlink() or _stays(base, step) for step in way)
        if stays and path.is_file():
            result = do(tools(base / "root"), "read", path="/".join(names), numbered=False)
            assert (result.status, result.text) == ("completed", "inside")


def _stays(base: Path, link: Path) -> bool:
    """Tell whether a link leads straight to something inside that is no link itself."""
    target = os.readlink(link)
    return ".." not in target and os.path.realpath(link) == os.path.normpath(link.parent / target)


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "/",
        "/etc/passwd",
        "../root/a",
        "../outside/secret",
        "a/../../outside/secret",
        "{base}/outside/secret",
        "{base}/root/../outside/secret",
        "{base}/root2",
    ],
)
def test_a_way_out_is_named_as_one(path: str) -> None:
    with farm({("a",): "folder"}) as base:
        (base / "root2").write_text(SECRET)
        asked = path.format(base=base)
        for name, rest in (("read", {}), ("write", {"content": ""}), ("grep", {"pattern": "a"})):
            result = do(tools(base / "root"), name, path=asked, **rest)
            assert result.status == "failed"
            assert result.text == f"{asked!r} leads out of the root folder"


def test_where_a_link_leads_to_is_not_told() -> None:
    with farm({}) as base:
        (base / "root/link").symlink_to(base / "outside/secret")
        text = do(tools(base / "root"), "read", path="link").text
        assert text == "'link' leads out of the root folder"


def test_links_in_a_ring_come_to_an_end() -> None:
    with farm({}) as base:
        (base / "root/a").symlink_to("b")
        (base / "root/b").symlink_to("a")
        assert (
            do(tools(base / "root"), "read", path="a").text
            == "a: Too many levels of symbolic links"
        )


def test_an_absolute_path_into_the_root_is_one_of_its_paths() -> None:
    with farm({("a",): "file"}) as base:
        (base / "alias").symlink_to("root")
        box = tools(base / "alias")
        for start in ("root", "alias"):
            assert do(box, "read", path=f"{base}/{start}/a", numbered=False).text == "inside"


@contextmanager
def before_step(step: int, change: Callable[[], None]) -> Iterator[list[str]]:
    """Make a change right before the so-manieth system call that asks for a path."""
    taken: list[str] = []

    def stepping(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            taken.append(name)
            if len(taken) == step:
                with pytest.MonkeyPatch.context() as plain:
                    for other, was in reals.items():
                        plain.setattr(os, other, was)
                    change()
            return real(*args, **kwargs)

        return call

    reals = {name: getattr(os, name) for name in ("open", "readlink", "stat", "mkdir", "rename")}
    with pytest.MonkeyPatch.context() as patch:
        for name in reals:
            patch.setattr(os, name, stepping(name))
        yield taken


def swap(path: Path, target: Path) -> None:
    """Put a link where something else is, in one moment."""
    path.rename(path.with_name("aside"))
    path.symlink_to(target)


def move_out(base: Path) -> None:
    (base / "f").write_text(SECRET)
    (base / "root/a").rename(base / "a")


CHANGES: dict[str, Callable[[Path], None]] = {
    "a file becomes a link": lambda base: swap(base / "root/a/b/secret", base / "outside/secret"),
    "its folder becomes a link": lambda base: swap(base / "root/a/b", base / "outside"),
    "the folder above becomes a link": lambda base: swap(base / "root/a", base / "outside"),
    "a folder is moved out": move_out,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("path", ["a/b/secret", "a/b/../../f", "link/secret"])
def test_what_is_changed_between_two_steps_is_no_way_out(change: str, path: str) -> None:
    plan = {("a", "b", "secret"): "file", ("f",): "file", ("link",): ("", ["a", "b"])}
    for act in (read_inside, write_inside):
        with farm(plan) as base, before_step(0, lambda: None) as undisturbed:
            act(base, path)
        for step in range(1, len(undisturbed) + 1):
            with farm(plan) as base:
                with (
                    before_step(step, partial(CHANGES[change], base)),
                    suppress(OSError, ToolError),
                ):
                    act(base, path)
                assert os.listdir(base / "outside") == ["secret"]
                assert (base / "outside/secret").read_text() == SECRET
                assert not (base / "f").exists() or (base / "f").read_text() == SECRET


def read_inside(base: Path, path: str) -> None:
    with roots.at(base / "root").file(path) as file:
        assert file.read() == b"inside"


def write_inside(base: Path, path: str) -> None:
    roots.at(base / "root").replace(path, b"new", lambda: False)


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder"])
def test_what_is_no_regular_file_is_neither_waited_for_nor_replaced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        match kind:
            case "fifo":
                os.mkfifo("odd")
            case "socket":
                listening.bind("odd")
            case _:
                os.mkdir("odd")
        box = tools(tmp_path)
        said = "odd is a folder" if kind == "folder" else "odd is no regular file"
        assert do(box, "read", path="odd").text == said
        assert do(box, "write", path="odd", content="x").text == said
        assert do(box, "edit", path="odd", old_text="x", new_text="y").text == said
        assert not do(box, "grep", pattern=".").text


@pytest.mark.parametrize("path", ["a\x00b", "\ud800"])
def test_a_path_that_no_system_takes_is_refused(path: str, tmp_path: Path) -> None:
    assert do(tools(tmp_path), "read", path=path).status == "failed"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    box = tools(tmp_path)
    (tmp_path / "a").write_text("a")

    def everything() -> None:
        do(box, "write", path="x/y/z", content="new")
        for path in ("a", "x/../a", "x/y", "nix/x", "../x", "/etc"):
            do(box, "read", path=path)
            do(box, "grep", pattern="a", path=path)
        do(box, "bash", command="echo")

    everything()
    before = len(os.listdir("/proc/self/fd"))
    everything()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_root_has_to_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ToolError):
        roots.at(tmp_path / "nix")
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError):
        roots.at(tmp_path / "file")


def test_a_part_of_a_name_is_no_way_in(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with pytest.raises(OutsideError):
        roots.at(tmp_path / "root").parts(f"{tmp_path}/rooted/a")


@pytest.mark.parametrize("name", ["read", "write", "edit", "grep", "glob"])
def test_a_path_has_its_limit(name: str, tmp_path: Path) -> None:
    path = "a/" * 2_049
    more = {"write": {"content": ""}, "edit": {"old_text": "a", "new_text": "b"}}
    more |= {"grep": {"pattern": "a"}, "glob": {"pattern": "*"}}
    result = do(tools(tmp_path), name, path=path, **more.get(name, {}))
    assert result.status == "failed"
    assert result.text.endswith(": File name too long")
    assert not list(tmp_path.iterdir())
