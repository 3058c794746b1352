"""`steno secrets`: a value goes in by standard input and comes out nowhere."""

import io
import json
import sys

import pytest

from stenograph.cli import main
from stenograph.sessions import secret
from stenograph.storage import location
from stenograph.storage.sealing import sealer

VALUE = "correct horse\nbattery staple"


@pytest.fixture
def steno(tmp_path, monkeypatch, capsys):
    """Run a command with a standard input, over a folder of the test's own: (status, out, err)."""

    def run(*arguments, given=""):
        arguments = ["steno", *arguments, "--data", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", arguments)
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        with pytest.raises(SystemExit) as ended:
            main.run(lambda settings, announce: None)
        said = capsys.readouterr()
        assert VALUE not in said.out + said.err
        return ended.value.code or 0, said.out, said.err

    return run


def kept(folder):
    """The values that the database holds, opened with the folder's key."""
    database = location.connect(location.locate(folder, None))
    key = sealer(folder, None)
    with database.read() as tx:
        rows = tx.rows("SELECT name, ciphertext FROM secrets")
    database.close()
    return set(secret.opened(key, {name: bytes(data) for name, data in rows}))


def test_a_secret_is_set_listed_and_deleted(steno, tmp_path):
    status, out, _ = steno("secrets", "set", "TOKEN", "--json", given=VALUE + "\n")
    assert status == 0
    assert json.loads(out)["name"] == "TOKEN"
    assert kept(tmp_path) == {VALUE}
    assert steno("secrets", "set", "TOKEN", given="another value\r\n")[1] == "Kept TOKEN\n"
    assert kept(tmp_path) == {"another value"}
    listed = json.loads(steno("secrets", "list", "--json")[1])["secrets"]
    assert [(s["name"], set(s)) for s in listed] == [
        ("TOKEN", {"id", "name", "created_at", "updated_at"})
    ]
    assert "TOKEN" in steno("secrets", "list")[1]
    assert steno("secrets", "delete", "TOKEN")[1] == "Deleted TOKEN\n"
    assert json.loads(steno("secrets", "list", "--json")[1]) == {"secrets": []}


@pytest.mark.parametrize(
    ("arguments", "given"),
    [(("set", "no name"), VALUE), (("set", "TOKEN"), "abc\n"), (("delete", "TOKEN"), "")],
)
def test_what_cannot_be_is_said_in_one_line(steno, tmp_path, arguments, given):
    status, out, err = steno("secrets", *arguments, given=given)
    assert (status, out) == (1, "")
    assert err.startswith("steno: ")
    assert err.count("\n") == 1
    assert kept(tmp_path) == set()
