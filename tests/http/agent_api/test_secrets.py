"""A run's secret values leave through no reading of the Agent API, whole or in part."""

import pytest

import story
from stenograph.runs import task
from stenograph.runs.task import Call
from stenograph.sessions import secret

VALUE = "hunter2-" + "Zq" * 60
MARKER = "[redacted-secret]"


@pytest.fixture
def where(database, org, sealer):
    """A conversation whose every text holds a secret, a fork of it, and what reads them."""
    text = f"before {VALUE} after"
    place = story.place(database, org.owner, title=text, metadata={"note": [text]})

    def give(tx):
        secret.create(tx, org.owner, sealer, "TOKEN", VALUE)
        secret.give(tx, place.conversation.id, secret.take(tx, org.owner, sealer, ["TOKEN"]))

    database.write(give)
    return place


@pytest.fixture
def said(database, where):
    # One character short of the preview, so that a cut before masking would leave most of it.
    near = "x" * 100 + VALUE

    def make(tx):
        said = story.open_run(tx, where, prompt=near)
        first = task.add_round(tx, said.run)
        story.think(tx, said, first, near, message=near)
        (call,) = task.add_calls(tx, said.run, first, [Call("sh", f'{{"cmd":"{VALUE}"}}', "c")])
        task.settle(tx, said.run, call, "failed", output=near, error=near)
        return story.finish(tx, said, near)

    return database.write(make)


def test_no_reading_shows_a_value_or_a_piece_of_it(api, database, where, said):
    story.direct_reply(database, where, reasoning=VALUE)
    story.message(database, where, f"{VALUE}{VALUE}")
    tip = story.message(database, where)
    fork = story.forked(database, where, tip)
    listed = where.path.rpartition("/")[0]
    for path in (
        listed, where.path, f"{where.path}/turns", f"{where.path}/inputs", f"{where.path}/events",
        where.turn(said), f"{where.turn(said)}/variants", where.reasoning(said),
        f"{where.variant(said)}/request", where.run(said), f"{where.run(said)}/transcript",
        f"{where.run(said)}/tasks/r1", f"{where.run(said)}/tasks/r2t0",
        fork.path, f"{fork.path}/turns", fork.reasoning(said),
    ):  # fmt: skip
        answer = api.get(path)
        assert answer.status_code == 200, path
        assert "hunter2" not in answer.text, path
        assert "ZqZq" not in answer.text, path
    assert MARKER in api.get(where.reasoning(said)).json()["items"][0]["text"]
    assert api.get(where.path).json()["conversation"]["metadata"] == {
        "note": [f"before {MARKER} after"]
    }


def test_an_answer_to_a_write_masks_too(api, where):
    answer = api.post(
        f"{where.path}/inputs",
        json={"input": {"kind": "message", "text": VALUE}},
        headers={"Idempotency-Key": "k"},
    )
    assert answer.json()["input"]["text"] == MARKER


def test_a_value_that_looks_like_a_word_of_the_contract_breaks_nothing(
    api, database, org, sealer, where, said
):
    def give(tx):
        for name, value in (("A", "items"), ("B", "task_key"), ("C", "completed"), ("D", "text")):
            secret.create(tx, org.owner, sealer, name, value)
        names = ["A", "B", "C", "D"]
        secret.give(tx, where.conversation.id, secret.take(tx, org.owner, sealer, names))

    database.write(give)
    (item,) = api.get(where.reasoning(said)).json()["items"]
    assert item["task_key"] == "r1"
    assert api.get(where.turn(said)).json()["turn"]["status"] == "completed"
