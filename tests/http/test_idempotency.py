"""A request sent twice acts once."""

from typing import Any

import msgspec
import pytest

from stenograph.clock import DAY, now
from stenograph.errors import NotFoundError, RefusedError
from stenograph.http import idempotency, server
from stenograph.http.context import Ctx
from stenograph.http.route import Answer, post
from stenograph.ids import new_id


class Box(msgspec.Struct):
    name: str
    items: list[int] = []


@pytest.fixture
def boxes(api, monkeypatch):
    """Serve `POST /boxes`, which needs a key and makes an organization, of all things."""

    async def make(ctx: Ctx) -> Answer:
        """Make a box."""
        sent = idempotency.key(ctx)
        box = ctx.body(Box)

        def act(tx: Any) -> tuple[str, Any]:
            if box.name == "refused":
                tx.insert("organizations", public_id=new_id(), slug="x", name="x", created_at=1)
                raise RefusedError("No", code="no_box")
            public_id = new_id()
            tx.insert(
                "organizations", public_id=public_id, slug=public_id, name=box.name, created_at=1
            )
            return public_id, {"id": public_id, "name": box.name}

        def again(tx: Any, public_id: str) -> Any:
            name = tx.value("SELECT name FROM organizations WHERE public_id = :id", id=public_id)
            if name is None:
                raise NotFoundError("Not found")
            return {"id": public_id, "name": name}

        return await ctx.write(
            lambda tx: idempotency.once(tx, sent, lambda: act(tx), lambda r: again(tx, r))
        )

    route = post("/boxes", id="makeBox", tag="Boxes", body=Box, status=201, answer=dict,
                 idempotency="required")(make)  # fmt: skip
    monkeypatch.setattr(server, "AGENT_API", [[route]])
    opened = type(api)(api.database, api.org, api.settings, api.sealer)
    yield opened
    opened.close()


def send(api, body=b'{"name":"a","items":[1,2]}', key="k", who=None):
    headers = {} if key is None else {"Idempotency-Key": key}
    return api.post("/agent_api/v1/boxes", content=body, headers=headers, key=who)


def count(api):
    with api.database.read() as tx:
        return tx.value("SELECT count(*) FROM organizations WHERE created_at = 1")


def test_the_second_gets_the_answer_of_the_first(boxes):
    first, second = send(boxes), send(boxes)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert first.headers["Idempotency-Replayed"] == "false"
    assert second.headers["Idempotency-Replayed"] == "true"
    assert count(boxes) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"items":[1,2],"name":"a"}', 201),
        (b' { "name" : "\\u0061", "items":[1, 2]} ', 201),
        (b'{"name":"a","items":[2,1]}', 409),
        (b'{"name":"a"}', 409),
        (b'{"name":"b","items":[1,2]}', 409),
    ],
)
def test_the_order_of_arrays_counts_and_that_of_members_does_not(boxes, body, status):
    send(boxes)
    answer = send(boxes, body)
    assert answer.status_code == status
    if status == 409:
        assert answer.json()["error"]["code"] == "idempotency_envelope_mismatch"
    assert count(boxes) == 1


def test_a_key_has_at_most_255_bytes(boxes):
    assert send(boxes, key="k" * 255).status_code == 201
    answer = send(boxes, key="k" * 256)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "parameter_invalid")


def test_a_refused_request_leaves_no_receipt(boxes):
    assert send(boxes, b'{"name":"refused"}').status_code == 422
    assert send(boxes, b'{"name":"fine"}').status_code == 201
    assert count(boxes) == 1


def test_keys_of_different_callers_do_not_meet(boxes):
    assert send(boxes).json() != send(boxes, who="member:admin").json()
    assert count(boxes) == 2


def test_a_receipt_counts_for_a_day(boxes):
    send(boxes)
    age(boxes, DAY - 60_000_000)
    assert send(boxes).headers["Idempotency-Replayed"] == "true"
    age(boxes, DAY + 1)
    assert send(boxes).headers["Idempotency-Replayed"] == "false"
    assert count(boxes) == 2


def test_old_receipts_are_pruned(boxes):
    send(boxes, key="old")
    age(boxes, DAY + 1)
    send(boxes, key="new")
    assert boxes.database.write(idempotency.prune) == 1
    with boxes.database.read() as tx:
        assert tx.rows("SELECT key FROM idempotency_receipts") == [("new",)]


def age(api, microseconds):
    """Make every receipt so old."""
    api.database.write(
        lambda tx: tx.run(
            "UPDATE idempotency_receipts SET created_at = :at", at=now() - microseconds
        )
    )
