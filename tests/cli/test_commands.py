"""`steno keys`, `steno people`, `steno db`: what they print, and how they fail."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from stenograph.accounts import access
from stenograph.cli import main
from stenograph.conversations import conversation, workspace
from stenograph.storage import location, migrate


@pytest.fixture
def steno(tmp_path, monkeypatch, capsys):
    """Run a command as a person would, over a folder of the test's own: (status, out, err)."""
    for name in os.environ:
        if name.startswith("STENO_"):
            monkeypatch.delenv(name)

    def run(*arguments, data=tmp_path / "data"):
        monkeypatch.setattr(sys, "argv", ["steno", *arguments, "--data", str(data)])
        with pytest.raises(SystemExit) as ended:
            main.run(lambda settings, announce: None)
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


def value(result):
    status, out, err = result
    assert (status, err) == (0, ""), (out, err)
    assert out.count("\n") == 1
    return json.loads(out)


def test_a_key_is_made_used_listed_and_revoked(steno, tmp_path):
    made = value(
        steno("keys", "create", "--plane", "api", "--scopes", "run, sessions:read",
              "--name", "ci", "--expires-days", "30", "--json")
    )  # fmt: skip
    assert made["scopes"] == ["run", "sessions:read"]
    assert made["secret"].startswith("reason_")
    assert made["name"] == "ci"
    assert made["expires_at"] is not None
    listed = value(steno("keys", "list", "--json"))["keys"]
    assert [k["public_id"] for k in listed if k["name"] == "ci"] == [made["public_id"]]
    assert made["secret"] not in json.dumps(listed)

    database = location.connect(location.locate(tmp_path / "data", None))
    with database.read() as tx:
        assert access.resolve(tx, made["secret"]).scopes == {"run", "sessions:read"}
    revoked = value(steno("keys", "revoke", made["public_id"], "--json"))
    assert revoked == {"public_id": made["public_id"], "revoked": True}
    with database.read() as tx, pytest.raises(Exception, match="revoked"):
        access.resolve(tx, made["secret"])
    database.close()


def test_for_people_a_new_key_is_the_only_line(steno):
    status, out, err = steno("keys", "create", "--plane", "member")
    assert (status, err) == (0, "")
    assert out.startswith("sk-steno-v1-")
    assert out.count("\n") == 1


def test_a_list_for_people_cuts_nothing_off(steno):
    made = value(steno("keys", "create", "--plane", "executor", "--name", "n" * 200, "--json"))
    _, out, _ = steno("keys", "list")
    assert made["public_id"] in out
    assert "n" * 200 in out


def test_people_are_added_and_hold_keys(steno):
    added = value(steno("people", "add", "ada", "--role", "admin", "--name", "Ada L.", "--json"))
    agent = value(steno("people", "add", "wren", "--role", "agent", "--json"))
    assert (added["kind"], added["role"]) == ("human", "admin")
    assert (agent["kind"], agent["role"]) == ("agent", None)
    people = value(steno("people", "list", "--json"))["people"]
    assert [p["handle"] for p in people] == ["owner", "agent", "ada", "wren"]
    key = value(steno("keys", "create", "--plane", "member", "--principal", "@ada", "--json"))
    assert key["principal"] == "ada"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["keys", "create", "--plane", "root"], "The plane must be one of"),
        (["keys", "create", "--plane", "api", "--scopes", "all"], "Unknown scope: all"),
        (["keys", "create", "--plane", "api", "--principal", "nobody"], "no one called 'nobody'"),
        (["keys", "create", "--plane", "api", "--expires-days", "0"], "1 to 36500 days"),
        (["keys", "revoke", "no-such-id"], "no key by that id"),
        (["people", "add", "Not A Handle"], "A handle is"),
        (["people", "add", "owner"], "is taken"),
        (["people", "add", "x", "--role", "king"], "The role must be one of"),
        (["keys", "list", "--database", "mysql://x"], "must start with"),
        (["keys", "list", "--database", "postgresql://127.0.0.1:1/none?connect_timeout=1"], ""),
    ],
)
def test_a_mistake_is_one_line_on_standard_error_and_status_1(steno, arguments, says, monkeypatch):
    monkeypatch.setattr("stenograph.storage.postgres.ConnectionPool.open", impatient)
    status, out, err = steno(*arguments)
    assert (status, out) == (1, "")
    assert err.startswith("steno: ")
    assert err.count("\n") == 1
    assert says in err
    assert "Traceback" not in err


def impatient(pool, wait=False, timeout=30.0):
    """Do not wait half a minute for a server that is not there."""
    import psycopg_pool

    raise psycopg_pool.PoolTimeout("pool initialization incomplete")


@pytest.mark.parametrize(
    "arguments", [["keys", "create"], ["nonsense"], ["keys", "list", "--wrong"], ["people", "add"]]
)
def test_wrong_usage_is_status_2(steno, arguments):
    status, out, err = steno(*arguments)
    assert (status, out) == (2, "")
    assert "Usage" in err


def test_a_data_folder_that_cannot_be_made_is_one_line(steno, tmp_path):
    (tmp_path / "file").write_text("")
    status, _, err = steno("keys", "list", data=tmp_path / "file" / "data")
    assert status == 1
    assert err.startswith("steno: ")
    assert err.count("\n") == 1


def test_a_file_that_is_no_database_is_one_line(steno, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "steno.db").write_bytes(b"this is no database at all" * 100)
    status, _, err = steno("keys", "list")
    assert (status, err) == (1, "steno: file is not a database\n")


def test_upgrading_says_from_where_to_where(steno):
    assert value(steno("db", "upgrade", "--json")) == {"before": None, "schema": migrate.head()}
    head = migrate.head()
    assert value(steno("db", "upgrade", "--json")) == {"before": head, "schema": head}
    assert "already" in steno("db", "upgrade")[1]


def test_every_command_explains_itself():
    runner = CliRunner()
    for words in (
        [],
        ["serve"],
        ["keys"],
        ["keys", "create"],
        ["people"],
        ["db"],
        ["db", "upgrade"],
    ):
        shown = runner.invoke(main.app, [*words, "--help"])
        assert shown.exit_code == 0
        assert "Usage" in shown.output


def test_the_installed_command_runs():
    done = subprocess.run(
        [sys.executable, "-c", "from stenograph.app import main; main()", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "0.1.0\n")


def test_the_search_index_is_written_anew(steno, tmp_path):
    assert steno("db", "reindex") == (0, "Everything is indexed\n", "")
    database = location.connect(location.locate(tmp_path / "data", None))

    def say(tx):
        owner = access.local(tx)
        home = workspace.create(tx, owner, "Home")
        conversation.create(tx, owner, home, title="A title")

    database.write(say)
    database.close()
    assert steno("db", "reindex")[0] == 0
    database = location.connect(location.locate(tmp_path / "data", None))
    with database.read() as tx:
        assert tx.rows("SELECT terms FROM search_documents") == [("_w1 _c1 a titl",)]
    database.close()
    assert steno("db", "check") == (0, "The record is whole\n", "")
