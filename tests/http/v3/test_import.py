"""`importSession`: what is taken in, what is refused, and that a refusal leaves nothing behind."""

import json
import random

import pytest

from trajectories.atif.documents import agent, document, user
from trajectories.importers import claude_code_lines as claude

TABLES = (
    "workspaces", "conversations", "sessions", "turns", "variants", "runs", "tasks", "steps",
    "messages", "events", "usage_receipts", "imports", "originals", "media", "principals",
)  # fmt: skip


def counts(database):
    with database.read() as tx:
        return {table: tx.value(f"SELECT count(*) FROM {table}") for table in TABLES}


@pytest.fixture
def take_in(api):
    return lambda content, query="", **options: api.post(
        f"{api.v3}/sessions/import{query}", content=content, **options
    )


def log(answer="a"):
    found = claude.Log()
    found.user("q")
    found.answer("m1", claude.text(answer))
    return found.bytes()


def test_created_then_unchanged_then_grown(take_in):
    first = take_in(log())
    assert first.status_code == 201
    (session,) = first.json()["sessions"]
    assert (session["change"], session["format"], session["turns"]) == ("created", "claude-code", 1)
    again = take_in(log())
    assert (again.status_code, again.json()["sessions"][0]["change"]) == (200, "unchanged")
    more = claude.Log()
    more.user("q")
    more.answer("m1", claude.text("a"))
    more.user("q2")
    grown = take_in(more.bytes())
    assert grown.status_code == 201
    found = grown.json()["sessions"][0]
    assert (found["change"], found["session_id"]) == ("grown", session["session_id"])


BAD = {
    "empty": b"",
    "blank": b" \n\t\n",
    "binary": random.Random(1).randbytes(4000),
    "nul": b"\0" * 4000,
    "text": b"hello",
    "array": b"[" * 100_000,
    "open objects": b'{"a":' * 100_000,
    "cut": b'{"schema_version":"ATIF-v1.7","agent":{"na',
    "nan": b'{"schema_version":"ATIF-v1.7","agent":NaN,"steps":[]}',
    "no steps": json.dumps({**document(), "steps": []}).encode(),
    "too deep": json.dumps(document(user(extra={"x": 1}))).encode().replace(
        b'{"x": 1}', b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    ),
    "no version": json.dumps({"agent": {}, "steps": "none"}).encode(),
    "version 2": json.dumps(document(version="ATIF-v2.0")).encode(),
    "packed badly": b"\x28\xb5\x2f\xfd" + b"x" * 100,
    "path leads out": json.dumps(
        document(
            user(
                message=[
                    {
                        "type": "image",
                        "source": {"media_type": "image/png", "path": "../../etc/passwd"},
                    }
                ]
            )
        )
    ).encode(),
}  # fmt: skip


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
@pytest.mark.parametrize("query", ["", "?format=atif", "?format=claude-code", "?format=codex"])
def test_what_is_no_log_is_refused_and_leaves_nothing(api, take_in, body, query):
    before = counts(api.database)
    answer = take_in(body, query)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()) <= {"error", "message"}
    assert counts(api.database) == before


@pytest.mark.parametrize("query", ["?format=html", "?mode=loud", "?secrets=NOT_THERE"])
def test_a_wrong_parameter_leaves_nothing(api, take_in, query):
    before = counts(api.database)
    assert take_in(log(), query).status_code in (400, 404)
    assert counts(api.database) == before


def test_one_bad_child_refuses_the_whole_family(api, take_in):
    before = counts(api.database)
    child = document(agent(metrics={"prompt_tokens": -1}), trajectory_id="c")
    answer = take_in(json.dumps(document(user(), subagent_trajectories=[child])))
    assert answer.status_code == 400
    assert "/subagent_trajectories/0/steps/0/metrics/prompt_tokens" in answer.json()["message"]
    assert counts(api.database) == before


def test_the_scope_decides(api, take_in):
    key = api.key("api", wanted=["sessions:read"])
    assert take_in(log(), key=key).status_code == 403
    assert take_in(log(), key="").status_code == 401
    assert take_in(log(), key="api:stranger").status_code == 404


def test_nobody_rewrites_what_somebody_else_imported(api, take_in):
    assert take_in(log(), key="api:member").status_code == 201
    before = counts(api.database)
    forged = claude.Log()
    forged.user("q, in other words", uuid="f1")
    forged.answer("m1", claude.text("an answer that was never given, longer than the first"))
    assert take_in(forged.bytes(), key="api:agent").status_code == 403
    assert counts(api.database) == before
    assert take_in(log(), key="api:agent").json()["sessions"][0]["change"] == "unchanged"


def test_many_at_once_make_one_session(api):
    path = f"{api.v3}/sessions/import"
    answers = api.together(*[("POST", path, {"content": log()})] * 8)
    found = [answer.json()["sessions"][0] for answer in answers]
    assert sorted(f["change"] for f in found) == ["created", *["unchanged"] * 7]
    assert len({f["session_id"] for f in found}) == 1
    assert counts(api.database)["sessions"] == 1


def test_two_documents_that_share_an_id_are_two_sessions(take_in):
    documents = [json.dumps(document(user(message=text))) for text in ("one", "two")]
    found = [take_in(data).json()["sessions"][0]["session_id"] for data in documents * 2]
    assert found[:2] == found[2:]
    assert found[0] != found[1]


def test_a_document_that_shrank_takes_nothing_away(take_in):
    steps = (user(), agent(message="a"), user(message="more"))
    whole = take_in(json.dumps(document(*steps))).json()["sessions"][0]
    answer = take_in(json.dumps(document(*steps[:1])))
    found = answer.json()["sessions"][0]
    assert answer.status_code == 200
    assert (found["session_id"], found["steps"]) == (whole["session_id"], 3)
    assert "nothing was taken" in found["warnings"][-1]
