"""`steno import`, `export`, `validate`: what they take, write and print, and how they fail."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stenograph.cli import main
from stenograph.retention import integrity
from stenograph.storage import location
from trajectories.atif.documents import document, image, user
from trajectories.importers import claude_code_lines as claude

PICTURES = ["img/a.png", "./img/b.png", "img//c.png", 'img/q"uote.png', "img/back\\slash.png"]


@pytest.fixture
def steno(tmp_path, monkeypatch, capfdbinary):
    """Run a command over a folder of the test's own: (status, out, err) as bytes."""

    def run(*arguments, data=tmp_path / "data"):
        place = [] if data is None else ["--data", str(data)]
        monkeypatch.setattr(sys, "argv", ["steno", *map(str, arguments), *place])
        with pytest.raises(SystemExit) as ended:
            main.run(lambda settings, announce: None)
        sys.stdout.flush()
        said = capfdbinary.readouterr()
        assert b"Traceback" not in said.out + said.err
        return ended.value.code or 0, said.out, said.err

    return run


def taken(result):
    status, out, err = result
    assert (status, err) == (0, b""), (out, err)
    return json.loads(out)["sessions"][0]["session_id"]


def log(session=claude.SESSION, answers=1):
    found = claude.Log(session)
    found.user("q")
    for n in range(answers):
        found.answer(f"m{n}", claude.text(f"a{n}"))
    return found.bytes()


def with_pictures(folder, *paths):
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"bytes of " + path.encode())
    message = [image(path) for path in paths]
    (folder / "doc.json").write_text(json.dumps(document(user(message=message))))
    return folder / "doc.json"


def test_pictures_go_out_and_come_in_again(steno, tmp_path):
    (tmp_path / "in").mkdir()
    session = taken(steno("import", with_pictures(tmp_path / "in", *PICTURES), "--json"))
    out = tmp_path / "out"
    out.mkdir()
    assert steno("export", session, "-o", out / "e.json") == (0, b"", b"")
    for path in PICTURES:
        assert (out / path).read_bytes() == b"bytes of " + path.encode()
    elsewhere = tmp_path / "elsewhere"
    again = taken(steno("import", out / "e.json", "--json", data=elsewhere))
    back = tmp_path / "back"
    back.mkdir()
    assert steno("export", again, "-o", back / "e.json", data=elsewhere)[0] == 0
    files = {p.relative_to(out) for p in out.rglob("*") if p.is_file()}
    assert {p.relative_to(back) for p in back.rglob("*") if p.is_file()} == files
    for path in files - {Path("e.json")}:
        assert (back / path).read_bytes() == (out / path).read_bytes()


def test_an_export_replaces_no_file_of_a_person(steno, tmp_path):
    (tmp_path / "in").mkdir()
    paths = ["img/a.png", ".ssh/authorized_keys"]
    session = taken(steno("import", with_pictures(tmp_path / "in", *paths), "--json"))
    out = tmp_path / "out"
    (out / ".ssh").mkdir(parents=True)
    (out / ".ssh" / "authorized_keys").write_text("mine")
    (out / "img").mkdir()
    (out / "img" / "a.png").write_text("mine")
    status, _, err = steno("export", session, "-o", out / "e.json")
    assert status == 1
    assert b"another content" in err
    assert sorted(p.name for p in out.iterdir()) == [".ssh", "img"]
    (out / "img" / "a.png").unlink()
    status, _, err = steno("export", session, "-o", out / "e.json")
    assert status == 0
    assert b"hidden file" in err
    assert (out / ".ssh" / "authorized_keys").read_text() == "mine"
    assert (out / "img" / "a.png").read_bytes() == b"bytes of img/a.png"
    # The same export once more replaces the document, and finds its picture there.
    assert steno("export", session, "-o", out / "e.json")[0] == 0


def test_a_link_leads_no_picture_out_of_the_folder(steno, tmp_path):
    (tmp_path / "in").mkdir()
    session = taken(steno("import", with_pictures(tmp_path / "in", "img/a.png"), "--json"))
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir()
    outside.mkdir()
    (out / "img").symlink_to(outside)
    status, _, err = steno("export", session, "-o", out / "e.json")
    assert status == 0
    assert b"outside" in err
    assert list(outside.iterdir()) == []


def test_a_name_that_is_masked_lies_beside_the_document_under_its_alias(steno, tmp_path):
    (tmp_path / "in").mkdir()
    secret = "ghp_" + "a1" * 12 + ".png"
    session = taken(steno("import", with_pictures(tmp_path / "in", secret), "--json"))
    out = tmp_path / "out"
    out.mkdir()
    assert steno("export", session, "-o", out / "e.json", "--redact", "standard")[0] == 0
    (part,) = json.loads((out / "e.json").read_text())["steps"][0]["message"]
    assert (out / part["source"]["path"]).read_bytes() == b"bytes of " + secret.encode()
    assert all(secret not in str(path) for path in out.rglob("*"))


@pytest.mark.parametrize("target", [".", "..", "/", "", "folder", "nowhere/x.json", "file/x.json"])
def test_where_nothing_can_be_written(steno, tmp_path, monkeypatch, target):
    (tmp_path / "log.jsonl").write_bytes(log())
    session = taken(steno("import", tmp_path / "log.jsonl", "--json"))
    work = tmp_path / "work"
    (work / "folder").mkdir(parents=True)
    (work / "file").write_text("mine")
    monkeypatch.chdir(work)
    status, out, err = steno("export", session, "-o", target)
    assert (status, out) == (1, b"")
    assert err.startswith(b"steno: ")
    assert err.count(b"\n") == 1
    assert sorted(p.name for p in work.rglob("*")) == ["file", "folder"]


def test_a_device_stays_a_device(steno, tmp_path):
    (tmp_path / "log.jsonl").write_bytes(log())
    session = taken(steno("import", tmp_path / "log.jsonl", "--json"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    assert steno("export", session, "-o", pipe)[0] == 0
    assert json.loads(reader.communicate()[0])["steps"][0]["message"] == "q"
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "session", ["nope", "\udcff", "../x", "01a22f98-1db0-751e-8bf9-1c8ced9dcb09"]
)
def test_an_export_of_nothing(steno, session):
    assert steno("export", session) == (1, b"", b"steno: There is no such session\n")


BAD = {
    "empty.jsonl": b"",
    "binary.jsonl": random.Random(1).randbytes(4000),
    "nul.jsonl": b"\0" * 1000,
    "deep.json": b'{"schema_version":"ATIF-v1.7","a":' + b"[" * 100_000,
    "cut.json": b'{"schema_version":"ATIF-v1.7","session_id":"d","agent":{"na',
    "odd\udcff.jsonl": b"hello",
}


def test_one_bad_file_costs_no_other_and_each_is_named(steno, tmp_path):
    folder = tmp_path / "odd\udcfe folder"
    folder.mkdir()
    for name, data in BAD.items():
        (folder / name).write_bytes(data)
    (folder / "good\udcff.jsonl").write_bytes(log())
    status, out, err = steno("import", folder)
    assert status == 1
    assert b"created" in out
    for name in BAD:
        shown = name.replace("\udcff", "\ufffd").encode()
        assert (out + err).count(b"/" + shown) == 1, name
    status, out, _ = steno("import", folder, "--json")
    report = json.loads(out)
    assert [found["change"] for found in report["sessions"]] == ["unchanged"]
    assert len(report["failed"] + report["skipped"]) == len(BAD)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_that_was_named_is_one_sentence(steno, tmp_path, name):
    (tmp_path / name).write_bytes(BAD[name])
    status, out, err = steno("import", tmp_path / name)
    assert status == 1
    assert err.count(b"\n") == 1
    assert name.partition("\udcff")[0].encode() in err
    assert b"created" not in out
    status, out, err = steno("validate", tmp_path / name, data=None)
    assert (status, err) == (1, b"")
    assert out.startswith(b"/: ")


def test_a_title_steers_no_terminal(steno, tmp_path):
    found = claude.Log()
    found.user("\x1b[31mred\x07 \x9b1m title")
    (tmp_path / "log.jsonl").write_bytes(found.bytes())
    status, out, _ = steno("import", tmp_path / "log.jsonl")
    assert status == 0
    assert "\ufffd[31mred\ufffd \ufffd1m title" in out.decode()


# Processes of their own


@pytest.fixture
def process(tmp_path):
    """Start `steno …` in a process of its own."""
    program = Path(sys.executable).with_name("steno")
    env = {n: v for n, v in os.environ.items() if not n.startswith("STENO_")}

    def start(*arguments, out=subprocess.PIPE):
        command = [program, *map(str, arguments), "--data", tmp_path / "data"]
        return subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, env=env)

    return start


def test_imports_in_many_processes_make_one_session(process, tmp_path):
    (tmp_path / "log.jsonl").write_bytes(log(answers=200))
    running = [process("import", tmp_path / "log.jsonl", "--json") for _ in range(4)]
    found = [json.loads(each.communicate()[0])["sessions"][0] for each in running]
    assert sorted(f["change"] for f in found) == ["created", *["unchanged"] * 3]
    assert len({f["session_id"] for f in found}) == 1


def test_a_killed_import_leaves_nothing_half_done(process, tmp_path):
    (tmp_path / "log.jsonl").write_bytes(log(answers=3000))
    process("keys", "list").communicate()
    database = location.connect(location.locate(tmp_path / "data", None))
    for delay in (0.4, 0.55, 0.7):
        running = process("import", tmp_path / "log.jsonl")
        time.sleep(delay)
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert integrity.check(database) == []
        with database.read() as tx:
            steps = tx.value("SELECT count(*) FROM steps")
        assert steps in (0, 3001)
    out, _ = process("import", tmp_path / "log.jsonl", "--json").communicate()
    assert json.loads(out)["sessions"][0]["steps"] == 3001
    database.close()


def test_a_reader_that_stops_listening_gets_no_traceback(process, tmp_path):
    (tmp_path / "log.jsonl").write_bytes(log(answers=2000))
    out, _ = process("import", tmp_path / "log.jsonl", "--json").communicate()
    session = json.loads(out)["sessions"][0]["session_id"]
    running = process("export", session)
    running.stdout.read(5)
    running.stdout.close()
    assert b"Traceback" not in running.stderr.read()
    running.stderr.close()
    running.wait()
    with open("/dev/full", "wb") as full:
        running = process("export", session, out=full)
    _, err = running.communicate()
    assert running.returncode == 1
    assert err.count(b"\n") == 1
