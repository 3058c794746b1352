"""Files that came with what was said, in the document and where it says they lie."""

import base64

import pytest

import story
from exports import exported
from oracles import atif_package, harbor
from stenograph.sessions import conversing
from stenograph.trajectories.atif.check import problems
from stenograph.trajectories.export import store

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
PICTURE = {"filename": "p.png", "content_type": "image/png", "data": base64.b64encode(PNG).decode()}
NOTES = {"filename": "n.txt", "content_type": "text/plain", "data": "bm90ZXM="}
#: A page that says it is one, and must never be served as one.
PAGE = {"filename": "x.html", "content_type": "text/html", "data": "PGI+"}


@pytest.fixture
def where(database, org):
    made = story.place(database, org.owner)
    database.write(lambda tx: conversing.begin(tx, org.owner, made.conversation.id))
    return made


def send(api, where, text, *files, **more):
    body = {"kind": "message", "text": text, "attachments": list(files), **more}
    sent = api.post(f"{where.path}/inputs", json={"input": body},
                    headers={"Idempotency-Key": text})  # fmt: skip
    assert sent.status_code == 202, sent.text
    return sent.json()["input"]


def document(api, where):
    found = exported(api.database, where.conversation.public_id)
    for validate in (harbor.validate, atif_package.validate):
        assert validate(found) == []
    assert problems(found) == []
    return found


def listed(step):
    return [file["filename"] for file in step["extra"]["stenograph"]["attachments"]]


def test_pictures_are_parts_and_every_file_is_named(api, where):
    send(api, where, "Look", PICTURE, NOTES, PAGE)
    send(api, where, "Nothing")
    first, second = document(api, where)["steps"]
    assert [part["type"] for part in first["message"]] == ["text", "image"]
    assert first["message"][0]["text"] == "Look"
    assert listed(first) == ["p.png", "n.txt", "x.html"]
    assert second["message"] == "Nothing"
    media = f"{api.v3}/sessions/{where.conversation.public_id}"
    source = first["message"][1]["source"]
    answer = api.get(f"{media}/{source['path']}")
    assert (answer.content, answer.headers["content-type"]) == (PNG, "image/png")
    for file, ending in zip(first["extra"]["stenograph"]["attachments"], ("gif", "plain", "html"),
                            strict=True):  # fmt: skip
        assert api.get(f"{media}/media/{file['public_id']}.{ending}").status_code == 404
    assert api.get(f"{media}/{source['path']}", key="api:stranger").status_code == 404
    with api.database.read() as tx:  # what `steno export -o` writes beside the document
        assert store.media_paths(tx, [where.conversation.id]) == [source["path"]]


def test_what_steers_brings_its_own(api, database, where):
    said = database.write(lambda tx: story.open_run(tx, where))
    send(api, where, "This one", PICTURE, kind="direct_reply", delivery_mode="steer")
    database.write(
        lambda tx: conversing.take_steers(tx, where.conversation.id, said.turn.id, said.variant.id)
    )
    (step,) = [it for it in document(api, where)["steps"] if it["source"] == "user" and it["extra"]]
    assert step["message"][0]["text"] == "This one"
    assert listed(step) == ["p.png"]
    assert step["extra"]["stenograph"]["input"]


def test_a_concealed_turn_takes_its_files_along(api, where):
    send(api, where, "Look", PICTURE)
    send(api, where, "Newer")
    (path,) = [part["source"]["path"] for part in document(api, where)["steps"][0]["message"][1:]]
    turn = api.get(f"{where.path}/turns").json()["turns"][0]["public_id"]
    conceal = {"turn": {"concealed": True}}
    assert api.patch(f"{where.path}/turns/{turn}", json=conceal).status_code == 200
    assert len(document(api, where)["steps"]) == 1
    assert api.get(f"{api.v3}/sessions/{where.conversation.public_id}/{path}").status_code == 404
