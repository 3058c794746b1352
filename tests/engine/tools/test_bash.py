"""Commands: bounded in time, in memory and in what they see; ended as a whole."""

import asyncio
import os
import tracemalloc
from pathlib import Path

import pytest

from engine.tools.doing import do, tools
from stenograph.engine import results
from stenograph.engine.tools.capture import Capture
from stenograph.engine.tools.workplace import Limits

#: A shell, a child in the background and one of that one's, all with the pipe open.
FAMILY = "exec 3>alive; sleep 600 & (sleep 600 & wait) & echo up >&3; "


def family(folder: Path) -> int:
    """Return a pipe that a family reports to: `up`, and its end when the last one has died."""
    os.mkfifo(folder / "alive")
    return os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK)


def until_dead(pipe: int) -> bytes:
    """Read what the family said, until nobody holds its pipe any more."""
    os.set_blocking(pipe, True)
    said = b""
    while chunk := os.read(pipe, 100):
        said += chunk
    os.close(pipe)
    return said


def test_output_and_errors_come_as_they_were_written(tmp_path: Path) -> None:
    result = do(tools(tmp_path), "bash", command="echo 1; echo 2 >&2; echo 3; pwd")
    assert (result.status, result.text) == ("completed", f"1\n2\n3\n{tmp_path}\n")


def test_a_command_sees_the_environment_it_is_given_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STENO_KEY", "the worker's own")
    result = do(tools(tmp_path, TOKEN="s3cret"), "bash", command="env -0 | tr '\\0' '\\n'")
    seen = dict(line.split("=", 1) for line in result.text.splitlines())
    assert seen.pop("TOKEN") == "s3cret"
    assert seen.pop("HOME") == str(tmp_path)
    # The rest is what bash sets for itself.
    assert set(seen) == {"PATH", "PWD", "SHLVL", "_"}


def test_secrets_are_not_in_what_a_toolbox_says_of_itself(tmp_path: Path) -> None:
    assert "s3cret" not in repr(tools(tmp_path, TOKEN="s3cret"))


def test_there_is_no_input(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"typed\n")
    os.close(writing)
    own = os.dup(0)
    os.dup2(reading, 0)
    try:
        result = do(tools(tmp_path), "bash", command="cat; read x || echo none")
    finally:
        os.dup2(own, 0)
        for fd in (own, reading):
            os.close(fd)
    assert result.text == "none\n"


def test_no_descriptor_of_the_worker_is_passed_on(tmp_path: Path) -> None:
    result = do(tools(tmp_path), "bash", command="ls /proc/self/fd | wc -l")
    # Its three, and the folder that it lists.
    assert result.text.strip() == "4"


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("echo no; exit 3", "[exit status 3]\nno\n"),
        ("echo no; kill -9 $$", "[ended by SIGKILL]\nno\n"),
        ("echo no; kill -40 $$", "[ended by signal 40]\nno\n"),
    ],
)
def test_a_command_that_fails_says_how(command: str, note: str, tmp_path: Path) -> None:
    outcome = do(tools(tmp_path), "bash", command=command).outcome()
    assert (outcome.status, outcome.output, outcome.preview) == ("failed", note, note)


def test_when_the_time_is_up_all_of_it_is_ended(tmp_path: Path) -> None:
    pipe = family(tmp_path)
    result = do(tools(tmp_path), "bash", command=f"{FAMILY}echo begun; wait", timeout_seconds=0.5)
    assert until_dead(pipe) == b"up\n"
    assert (result.status, result.text) == ("timed_out", "begun\n")
    assert result.notes == ("timed out after 0.5 seconds, and was ended",)


def test_no_call_may_take_longer_than_the_limit(tmp_path: Path) -> None:
    box = tools(tmp_path, Limits(longest_timeout=0.1))
    assert do(box, "bash", command="sleep 600", timeout_seconds=1e300).status == "timed_out"
    assert do(box, "bash", command="sleep 600").status == "timed_out"


def test_what_it_leaves_in_the_background_ends_with_it(tmp_path: Path) -> None:
    pipe = family(tmp_path)
    result = do(tools(tmp_path), "bash", command=f"{FAMILY}echo done")
    assert until_dead(pipe) == b"up\n"
    assert (result.status, result.text) == ("completed", "done\n")


def test_a_cancelled_call_takes_all_of_it_along(tmp_path: Path) -> None:
    pipe = family(tmp_path)

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()
        up = asyncio.Event()
        loop.add_reader(pipe, up.set)
        call = asyncio.create_task(tools(tmp_path).run("bash", {"command": f"{FAMILY}wait"}))
        await up.wait()
        loop.remove_reader(pipe)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())
    assert until_dead(pipe) == b"up\n"


def test_a_daemon_that_keeps_the_output_open_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "end")
    os.mkfifo(tmp_path / "up")
    command = "setsid sh -c 'echo child; echo >up; read x <end' & read x <up; echo done"
    result = do(tools(tmp_path), "bash", command=command)
    assert (result.status, sorted(result.text.split())) == ("completed", ["child", "done"])
    with (tmp_path / "end").open("w") as end:
        end.write("\n")


def test_many_at_once_wait_for_each_other_in_any_order(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    box = tools(tmp_path)

    async def both() -> list[str]:
        commands = ["read x <p; echo got $x", *["true"] * 20, "echo it >p"]
        calls = [box.run("bash", {"command": command}) for command in commands]
        return [result.text for result in await asyncio.gather(*calls)]

    assert asyncio.run(both())[0] == "got it\n"


def test_a_hundred_megabytes_take_no_hundred_megabytes(tmp_path: Path) -> None:
    box = tools(tmp_path)
    command = "echo first; head -c 100000000 /dev/zero | tr '\\0' 'x'; echo; echo last"
    tracemalloc.start()
    try:
        result = do(box, "bash", command=command)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 << 20
    assert (result.status, result.truncated, result.binary) == ("completed", True, False)
    assert result.text.startswith("first\nxxx")
    assert result.text.endswith("xxx\nlast\n")
    assert len(result.text) < (8 << 20) + 100
    outcome = result.outcome()
    assert outcome.output.startswith("[100000012 bytes, of which 8388608 are kept]\nfirst\n")
    assert outcome.preview is not None
    assert len(outcome.preview) <= results.PREVIEW
    assert outcome.preview.endswith("xxx\nlast\n")


def test_output_up_to_the_limit_is_whole(tmp_path: Path) -> None:
    box = tools(tmp_path, Limits(output=100_000))
    whole = do(box, "bash", command="yes | head -c 100000")
    assert (whole.text, whole.truncated) == ("y\n" * 50_000, False)
    assert do(box, "bash", command="yes | head -c 100001").truncated


@pytest.mark.parametrize("output", [r"\xff\xfe", r"a\x00b", r"\xc3"])
def test_what_is_no_text_is_decoded_and_said_to_be_none(output: str, tmp_path: Path) -> None:
    result = do(tools(tmp_path), "bash", command=f"printf '{output}'")
    assert result.binary
    outcome = result.outcome()
    assert outcome.output.startswith("[not all of this is text]\n")
    assert "\x00" not in outcome.output
    assert "\ufffd" in outcome.output


def test_an_output_of_nothing_is_told_as_that(tmp_path: Path) -> None:
    outcome = do(tools(tmp_path), "bash", command="true").outcome()
    assert (outcome.output, outcome.preview) == ("", "[no output]")


@pytest.mark.parametrize("command", ["a\x00b", "echo \ud800", "x" * 3_000_000])
def test_a_command_that_no_system_takes_is_a_failed_call(command: str, tmp_path: Path) -> None:
    assert do(tools(tmp_path), "bash", command=command).status == "failed"


def test_without_bash_it_says_so(tmp_path: Path) -> None:
    result = do(tools(tmp_path, PATH="/nowhere"), "bash", command="echo")
    assert (result.status, result.text) == ("failed", "bash: No such file or directory")


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_cut_within_a_character_makes_no_text_binary(cut: int) -> None:
    capture = Capture(limit=20 + cut)
    for _ in range(100):
        capture.add("a€ü𝄞".encode())
    text, binary = capture.text()
    assert not binary
    first, last = text.split("\n[… ")
    assert ("a€ü𝄞" * 100).startswith(first)
    assert ("a€ü𝄞" * 100).endswith(last.split(" …]\n")[1])
    assert capture.truncated
