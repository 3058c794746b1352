"""Files that come with inputs: what is taken, who reads them, where they go."""

import base64

import pytest

import story
from stenograph.conversations import attachment
from stenograph.conversations import input as inputs
from stenograph.errors import RefusedError
from stenograph.sessions import secret

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


@pytest.fixture
def busy(database, where):
    return database.write(lambda tx: story.open_run(tx, where))


def file(data=b"words", name="notes.txt", kind="text/plain"):
    return {"filename": name, "content_type": kind, "data": base64.b64encode(data).decode()}


def send(api, where, *files, key="k", **body):
    body = {"kind": "message", "text": "Look", "attachments": list(files)} | body
    headers = {"Idempotency-Key": key}
    return api.post(f"{where.path}/inputs", json={"input": body}, headers=headers)


def read(api, where, row, **options):
    return api.get(f"{where.path}/attachments/{row['public_id']}", **options)


def refusal(answer):
    return answer.status_code, answer.json()["error"]["code"]


def test_files_are_kept_byte_for_byte(api, where):
    sent = send(api, where, file(), file(PNG, "p.png", "image/png"), file(b"\0\xff", "b", "a/b"))
    rows = sent.json()["input"]["attachments"]
    assert [list(row.values())[1:] for row in rows] == [
        ["notes.txt", "text/plain", 5], ["p.png", "image/png", 28], ["b", "a/b", 2],
    ]  # fmt: skip
    for row, data in zip(rows, (b"words", PNG, b"\0\xff"), strict=True):
        answer = read(api, where, row)
        assert answer.content == data
        assert answer.headers["content-type"].startswith(row["content_type"])
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    assert send(api, where, file()).status_code == 409  # the key was used with another body


@pytest.mark.parametrize("name", ["", " ", "a/b", "a\\b", "a\nb", "x" * 256, ".", ".. "])
def test_names_are_names(name):
    with pytest.raises(RefusedError, match="filename"):
        attachment.check([attachment.File(name, "text/plain", b"x")])


def test_what_is_no_such_file_is_refused(api, where):
    for bad in (
        file(b"GIF89a", "p.png", "image/png"),
        file(b"", "empty", "text/plain"),
        file(b"x", "x", "text"),
        file(b"x", "x", "Text/Plain"),
        {"public_id": NOWHERE},
        {"public_id": NOWHERE, "data": "YQ=="},
        {"filename": "a", "data": "YQ=="},
    ):
        assert refusal(send(api, where, bad)) == (422, "validation_failed"), bad
    assert refusal(send(api, where, *[file()] * 21)) == (422, "validation_failed")
    large = file(bytes(10 * 2**20 + 1), "large.bin", "application/octet-stream")
    assert refusal(send(api, where, large)) == (413, "content_too_large")
    assert api.get(f"{where.path}/events").json()["events"] == []


def test_an_edit_keeps_what_it_names(api, database, where, busy):
    sent = send(api, where, file(b"one", "1"), file(b"two", "2")).json()["input"]
    first, second = sent["attachments"]
    path = f"{where.path}/inputs/{sent['public_id']}"
    change = {"attachments": [{"public_id": second["public_id"]}, file(b"three", "3")]}
    row = api.patch(path, json={"input": change}).json()["input"]
    assert row["attachments"][0] == second
    assert [it["filename"] for it in row["attachments"]] == ["2", "3"]
    assert read(api, where, first).status_code == 404
    unchanged = api.patch(path, json={"input": {"text": "x"}}).json()["input"]
    assert unchanged["attachments"] == row["attachments"]
    # The file of another input is copied, and goes its own way.
    other = send(api, where, {"public_id": second["public_id"]}, key="2").json()["input"]
    (copy,) = other["attachments"]
    assert copy["public_id"] != second["public_id"]
    assert api.delete(path).status_code == 204
    assert read(api, where, second).status_code == 404
    assert read(api, where, copy).content == b"two"
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM attachments") == 1


def test_files_that_are_only_named_count_too(api, where, monkeypatch):
    (row,) = send(api, where, file(b"words")).json()["input"]["attachments"]
    named = {"public_id": row["public_id"]}
    monkeypatch.setattr(attachment, "TOTAL", 10)
    assert send(api, where, named, named, key="2").status_code == 202
    answer = send(api, where, named, named, named, key="3")
    assert answer.json()["error"]["code"] == "content_too_large"


def test_a_file_goes_where_its_turn_goes(api, database, where):
    (row,) = send(api, where, file()).json()["input"]["attachments"]
    (turn,) = api.get(f"{where.path}/turns").json()["turns"]
    send(api, where, key="2")
    message = database.write(
        lambda tx: inputs.accept(tx, where.caller, where.conversation, kind="message", text="x")
    )
    last = api.get(f"{where.path}/inputs/{message.public_id}/materialization").json()
    body = {"fork": {"turn_public_id": last["materialization"]["turn_public_id"]}}
    made = api.post(f"{where.path}/forks", json=body, headers={"Idempotency-Key": "f"}).json()
    home = where.path.rpartition("/")[0]
    fork = f"{home}/{made['conversation']['public_id']}/attachments/{row['public_id']}"
    assert api.get(fork).content == b"words"
    other = story.another(database, where)
    assert read(api, other, row).status_code == 404
    # Concealed in the source, it is still there in the fork, which sees the turn.
    path = f"{where.path}/turns/{turn['public_id']}"
    assert api.patch(path, json={"turn": {"concealed": True}}).status_code == 200
    assert read(api, where, row).status_code == 404
    assert api.get(fork).status_code == 200
    path = fork.partition("/attachments")[0] + f"/turns/{turn['public_id']}"
    assert api.patch(path, json={"turn": {"concealed": True}}).status_code == 200
    assert api.get(fork).status_code == 404


def test_who_may_read_the_conversation_may_read_its_files(api, database, where, busy):
    (row,) = send(api, where, file()).json()["input"]["attachments"]
    story.run_sql(database, "UPDATE conversations SET access_default = 'read'")
    assert read(api, where, row, key="member:member").status_code == 200
    story.run_sql(database, "UPDATE conversations SET access_default = 'none'")
    unknown = read(api, where, {"public_id": NOWHERE})
    for key in ("member:member", "member:stranger"):
        answer = read(api, where, row, key=key)
        assert (answer.status_code, answer.content) == (404, unknown.content)
    assert read(api, where, row, key="executor").status_code == 401
    story.tombstone(database, where)
    assert read(api, where, row).status_code == 404


def test_secret_values_leave_in_no_file_and_no_row(api, database, where, busy, org, sealer):
    value = "hunter2-" + "Zq" * 60

    def plant(tx):
        secret.create(tx, org.owner, sealer, "TOKEN", value)
        secret.give(tx, where.conversation.id, secret.take(tx, org.owner, sealer, ["TOKEN"]))

    database.write(plant)
    files = [file(f"it is {value}.".encode(), f"{value}.txt"), file(b"\0" + value.encode(), "b")]
    text, binary = send(api, where, *files).json()["input"]["attachments"]
    answer = read(api, where, text)
    assert answer.content == b"it is [redacted-secret]."
    assert "hunter2" not in str(answer.headers)
    assert read(api, where, binary).status_code == 404
    raw = {"context_mode": "raw", "entries": [{"role": "user", "text": value}], "text": None}
    send(api, where, key="2", kind="direct_reply", instructions="{{v}}", variables={"v": value},
         **raw)  # fmt: skip
    passage = {"title": value, "text": value}
    send(api, where, key="3", kind="direct_reply", inline=[passage], text=value)
    listed = api.get(f"{where.path}/inputs").text
    assert listed.count("[redacted-secret]") == 6
    assert "hunter2" not in listed
