"""What becomes of a conversation: names, archive, end, access, default runner, cancellation."""

import json

import pytest

import story
from stenograph.conversations import conversation
from stenograph.conversations import input as inputs
from stenograph.ids import new_id
from trajectories.atif.documents import agent, document, user

NOWHERE = "00000000-0000-7000-8000-000000000000"
ROOT = story.run_sql


@pytest.fixture
def where(database, org):
    return story.place(
        database, org.owner, entries=[conversation.Entry("member", "read")], title="T"
    )


def code(answer):
    return answer.status_code, answer.json()["error"]["code"]


def events(api, where, key="member"):
    return api.get(f"{where.path}/events", key=key).json()["events"]


def ended(api, where):
    return [e["payload"]["reason"] for e in events(api, where) if e["type"] == "conversation_ended"]


def subagent(database, where, **columns):
    """A conversation that an agent of `where` started."""
    made = story.another(database, where)
    story.run_sql(
        database,
        "UPDATE conversations SET parent_id = :parent WHERE id = :id",
        id=made.conversation.id,
        parent=where.conversation.id,
    )
    return made


def make_side(api, where, key="side"):
    answer = api.post(
        f"{where.path}/forks", json={"fork": {"side": True}}, headers={"Idempotency-Key": key}
    )
    assert answer.status_code == 201, answer.text
    made = answer.json()["conversation"]["public_id"]
    return where.path.rpartition("/")[0] + "/" + made


def device(database, org, organization=None, **columns):
    """A device of an organization; returns its public id."""
    owner = organization or org.owner

    def make(tx):
        credential = tx.value("SELECT id FROM credentials ORDER BY id LIMIT 1")
        public_id = new_id()
        tx.insert(
            "devices",
            public_id=public_id,
            organization_id=owner.organization_id,
            creator_id=owner.principal_id,
            credential_id=credential,
            install_id="i",
            name="build box",
            lifecycle="persistent",
            created_at=1,
            last_seen_at=1,
            **columns,
        )
        return public_id

    return database.write(make)


# --- title and metadata -------------------------------------------------------------------------


def test_title_and_metadata_are_set_apart(api, where):
    def patch(**new):
        answer = api.patch(where.path, json={"conversation": new})
        assert answer.status_code == 200
        found = answer.json()["conversation"]
        assert api.get(where.path).json()["conversation"] == found
        return found["title"], found["metadata"]

    assert patch(metadata={"a": [1]}) == ("T", {"a": [1]})
    assert patch(title="U") == ("U", {"a": [1]})
    assert patch(title=None, metadata={}) == (None, {})
    assert patch() == (None, {})


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({}, 400, "parameter_missing"),
        ({"conversation": {"title": 5}}, 400, "parameter_invalid"),
        ({"conversation": {"metadata": None}}, 400, "parameter_invalid"),
        ({"conversation": {"title": "x" * 256}}, 422, "validation_failed"),
        ({"conversation": {"metadata": {"x": "y" * 70_000}}}, 422, "validation_failed"),
    ],
)
def test_a_bad_change_is_refused_and_changes_nothing(api, where, body, status, word):
    before = api.get(where.path).content
    assert code(api.patch(where.path, json=body)) == (status, word)
    assert api.get(where.path).content == before


# --- archive ------------------------------------------------------------------------------------


def test_an_archive_and_back(api, where):
    answer = api.post(f"{where.path}/archive")
    assert answer.status_code == 200
    archived = answer.json()["conversation"]
    assert archived["archived_at"] is not None
    again = api.post(f"{where.path}/archive").json()["conversation"]
    assert again["archived_at"] == archived["archived_at"]
    assert ended(api, where) == ["archived"]
    assert code(api.patch(where.path, json={"conversation": {"title": "U"}})) == (
        409,
        "conversation_archived",
    )
    for _ in range(2):
        back = api.post(f"{where.path}/unarchive")
        assert (back.status_code, back.json()["conversation"]["archived_at"]) == (200, None)
    assert api.patch(where.path, json={"conversation": {"title": "U"}}).status_code == 200
    assert ended(api, where) == ["archived"]


def test_what_runs_goes_on_in_the_archive_and_nothing_new_comes(api, database, where):
    said = database.write(lambda tx: story.open_run(tx, where))
    assert api.post(f"{where.path}/archive").status_code == 200
    database.write(lambda tx: story.finish(tx, said))
    answer = api.post(
        f"{where.path}/inputs",
        json={"input": {"kind": "message", "text": "x"}},
        headers={"Idempotency-Key": "k"},
    )
    assert code(answer) == (409, "conversation_archived")
    (turn,) = api.get(f"{where.path}/turns").json()["turns"]
    assert turn["status"] == "completed"


def test_subagents_follow_into_the_archive_and_out(api, database, where):
    child = subagent(database, where)
    grandchild = subagent(database, child)
    api.post(f"{where.path}/archive")
    for below in (child, grandchild):
        assert api.get(below.path).json()["conversation"]["archived_at"] is not None
        assert ended(api, below) == ["archived"]
        for verb in ("archive", "unarchive"):
            assert code(api.post(f"{below.path}/{verb}")) == (409, "subagent_follows_parent")
        assert code(api.delete(below.path)) == (409, "subagent_follows_parent")
    api.post(f"{where.path}/unarchive")
    for below in (child, grandchild):
        assert api.get(below.path).json()["conversation"]["archived_at"] is None


def test_a_side_is_never_archived(api, database, where):
    story.message(database, where)
    side = make_side(api, where)
    for verb in ("archive", "unarchive"):
        assert code(api.post(f"{side}/{verb}")) == (422, "side_conversation")


# --- the end ------------------------------------------------------------------------------------


def test_a_deleted_conversation_is_nowhere_with_its_subagents(api, database, where):
    child = subagent(database, where)
    said = story.rounds(database, where, ["a"])
    listed = where.path.rpartition("/")[0]
    answer = api.delete(where.path)
    assert (answer.status_code, answer.content) == (204, b"")
    unknown = api.get(where.path.replace(where.conversation.public_id, NOWHERE))
    for path in (
        where.path, child.path, f"{where.path}/events", f"{where.path}/turns", where.run(said),
        where.reasoning(said), f"{where.path}/children",
    ):  # fmt: skip
        gone = api.get(path)
        assert (gone.status_code, gone.content) == (404, unknown.content)
    assert api.delete(where.path).content == unknown.content
    assert api.get(listed).json()["conversations"] == []
    assert (
        api.get(f"/v3/organizations/default/sessions/{where.conversation.public_id}").status_code
        == 404
    )
    with database.read() as tx:
        last = tx.rows("SELECT type, payload FROM events ORDER BY sequence DESC, id LIMIT 1")
        kept = tx.value("SELECT count(*) FROM conversations")
    assert last[0] == ("conversation_ended", '{"reason":"tombstoned"}')
    assert kept == 2


def test_nothing_is_deleted_while_it_or_a_subagent_works(api, database, where):
    child = subagent(database, where)
    for working in (where, child):
        said = database.write(lambda tx, working=working: story.open_run(tx, working))
        assert code(api.delete(where.path)) == (409, "conversation_busy")
        database.write(lambda tx, said=said: story.finish(tx, said))
    assert api.delete(where.path).status_code == 204


def test_an_answer_that_is_made_anew_keeps_a_conversation(api, database, where):
    from stenograph.conversations import variant

    said = story.rounds(database, where, ["a"])
    database.write(
        lambda tx: variant.add(tx, said.turn, source="run", status="pending", activate=False)
    )
    assert code(api.delete(where.path)) == (409, "conversation_busy")


def test_a_side_goes_at_once_and_its_source_stays(api, database, where):
    story.message(database, where, "stays")
    side = make_side(api, where)
    assert api.delete(side).status_code == 204
    assert api.get(side).status_code == 404
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM conversations") == 1
        assert tx.value("SELECT count(*) FROM ancestries") == 0
    assert len(api.get(f"{where.path}/turns").json()["turns"]) == 1


def test_a_log_whose_session_was_deleted_is_imported_anew(api):
    body = json.dumps(document(user(), agent())).encode()

    def take_in():
        (one,) = api.post(f"{api.v3}/sessions/import", content=body).json()["sessions"]
        return one["session_id"], one["change"]

    first = take_in()[0]
    assert take_in() == (first, "unchanged")
    (home,) = api.get("/agent_api/v1/workspaces").json()["workspaces"]
    at = f"/agent_api/v1/workspaces/{home['public_id']}/conversations"
    assert api.delete(f"{at}/{first}").status_code == 204
    second, change = take_in()
    assert (second != first, change) == (True, "created")
    assert api.get(f"{at}/{second}").status_code == 200


# --- access -------------------------------------------------------------------------------------


def put_access(api, where, **access):
    return api.put(f"{where.path}/access", json={"access": access})


def test_access_is_replaced_wholly(api, where, org):
    assert api.get(where.path, key="member:member").status_code == 200
    answer = put_access(api, where, default="none", entries=[{"handle": "@admin", "level": "full"}])
    assert answer.status_code == 200
    found = answer.json()["conversation"]["access"]
    assert found == {
        "default": "none",
        "entries": [
            {
                "user_public_id": org.admin.principal_public_id,
                "handle": "admin",
                "level": "full",
            }
        ],
    }
    assert api.get(where.path, key="member:member").status_code == 404
    assert api.get(where.path, key="member:admin").json()["conversation"]["access"] == found
    assert put_access(api, where, default="read").json()["conversation"]["access"] == {
        "default": "read",
        "entries": [],
    }
    assert api.get(where.path, key="member:member").status_code == 200
    assert code(api.patch(where.path, json={"conversation": {}}, key="member:admin")) == (
        403,
        "not_authorized",
    )
    changes = [e["payload"] for e in events(api, where) if e["type"] == "access_changed"]
    assert changes == [{"default": "none"}, {"default": "read"}]


def test_who_made_it_and_who_answers_are_never_listed_and_never_lose_it(api, database, org):
    where = story.place(database, org.owner, answerer="agent")
    answer = put_access(
        api,
        where,
        default="none",
        entries=[{"handle": "owner", "level": "none"}, {"handle": "agent", "level": "read"}],
    )
    assert answer.json()["conversation"]["access"]["entries"] == []
    for key in ("member", "member:agent"):
        assert api.patch(where.path, json={"conversation": {}}, key=key).status_code == 200


@pytest.mark.parametrize(
    ("access", "status", "word"),
    [
        ({}, 400, "parameter_missing"),
        ({"default": "most"}, 400, "parameter_invalid"),
        ({"default": "read", "entries": [{"level": "read"}]}, 422, "principal_not_eligible"),
        (
            {"default": "read", "entries": [{"handle": "stranger", "level": "read"}]},
            422,
            "principal_not_eligible",
        ),
        (
            {
                "default": "read",
                "entries": [{"handle": f"h{n}", "level": "read"} for n in range(101)],
            },
            409,
            "entry_limit_reached",
        ),
    ],
)
def test_bad_access_is_refused_and_changes_nothing(api, where, access, status, word):
    before = api.get(where.path).content
    assert code(put_access(api, where, **access)) == (status, word)
    assert api.get(where.path).content == before


def test_someone_outside_a_private_workspace_is_not_eligible(api, database, where):
    story.run_sql(database, "UPDATE workspaces SET access_mode = 'private'")
    answer = put_access(api, where, default="full", entries=[{"handle": "admin", "level": "read"}])
    assert code(answer) == (422, "principal_not_eligible")


def test_a_reader_who_waits_loses_access_at_once(api, database, org):
    body = {"conversation": {"access": {"default": "read"}}}
    made = api.post("/agent_api/v1/workspaces", json={
        "workspace": {"name": "W", "access_mode": "account_wide"}
    }).json()["workspace"]["public_id"]  # fmt: skip
    home = f"/agent_api/v1/workspaces/{made}/conversations"
    found = api.post(home, json=body, headers={"Idempotency-Key": "k"}).json()["conversation"]
    session = found["public_id"]
    story.run_sql(database, "UPDATE sessions SET status = 'running'")
    waiting = f"{api.v3}/sessions/{session}/events?after_seq=50&wait_ms=20000"
    reader, changed = api.together(
        ("GET", waiting, {"key": "api:member"}),
        ("PUT", f"{home}/{session}/access", {"json": {"access": {"default": "none"}}}),
    )
    assert changed.status_code == 200
    assert reader.status_code == 404


# --- default runner -----------------------------------------------------------------------------


def put_runner(api, where, executor):
    body = {"default_runner": {"executor_public_id": executor}}
    return api.put(f"{where.path}/default_runner", json=body)


def test_a_default_runner_is_chosen_and_taken_away(api, database, org, where):
    box = device(database, org)
    answer = put_runner(api, where, box)
    assert answer.status_code == 200
    assert answer.json()["conversation"]["default_runner"] == {
        "executor_public_id": box,
        "name": "build box",
    }
    assert put_runner(api, where, box).status_code == 200
    assert put_runner(api, where, None).json()["conversation"]["default_runner"] is None
    changes = [e["payload"] for e in events(api, where) if e["type"] == "default_runner_changed"]
    assert changes == [{"executor_public_id": box}, {"executor_public_id": None}]


def test_runners_that_are_not_there_or_not_any_more(api, database, org, where):
    elsewhere = device(database, org, org.stranger)
    removed = device(database, org, removed_at=1)
    for executor, status, word in [
        (NOWHERE, 404, "runner_not_found"),
        (elsewhere, 404, "runner_not_found"),
        (removed, 409, "runner_not_eligible"),
    ]:
        assert code(put_runner(api, where, executor)) == (status, word)
    assert code(api.put(f"{where.path}/default_runner", json={"default_runner": {}})) == (
        400,
        "parameter_missing",
    )
    listed = where.path.rpartition("/")[0]
    for executor in (NOWHERE, elsewhere, removed):
        body = {"conversation": {"default_runner_executor_public_id": executor}}
        answer = api.post(listed, json=body, headers={"Idempotency-Key": executor})
        assert code(answer) == (422, "runner_not_eligible")
    box = device(database, org)
    body = {"conversation": {"default_runner_executor_public_id": box}}
    made = api.post(listed, json=body, headers={"Idempotency-Key": "k"})
    assert made.json()["conversation"]["default_runner"]["executor_public_id"] == box


# --- cancellation -------------------------------------------------------------------------------


def test_cancellation_stops_what_runs_here_and_below(api, database, where):
    child = subagent(database, where)
    for working in (where, child):
        database.write(lambda tx, working=working: story.open_run(tx, working))
    answer = api.post(f"{where.path}/cancellation")
    assert answer.status_code == 202
    assert answer.json()["conversation"]["active_turn_public_id"] is None
    for stopped in (where, child):
        (turn,) = api.get(f"{stopped.path}/turns").json()["turns"]
        assert turn["status"] == turn["active_variant"]["status"] == "canceled"
    assert code(api.post(f"{where.path}/cancellation")) == (422, "not_running")
    assert api.delete(where.path).status_code == 204


def test_an_archived_conversation_may_still_be_stopped(api, database, where):
    database.write(lambda tx: story.open_run(tx, where))
    api.post(f"{where.path}/archive")
    assert api.post(f"{where.path}/cancellation").status_code == 202


# --- who may, and in which order ----------------------------------------------------------------

CHANGES = [
    ("PATCH", "", {"conversation": {}}),
    ("DELETE", "", None),
    ("POST", "/archive", None),
    ("POST", "/unarchive", None),
    ("PUT", "/access", {"access": {"default": "full"}}),
    ("PUT", "/default_runner", {"default_runner": {"executor_public_id": None}}),
    ("POST", "/cancellation", None),
    ("POST", "/forks", {"fork": {"side": True}}),
]


def send(api, method, path, body, key):
    options = {} if body is None else {"json": body}
    return api.request(method, path, key=key, headers={"Idempotency-Key": "k"}, **options)


def test_in_an_archived_workspace_work_may_only_be_stopped_or_deleted(api, database, where):
    database.write(lambda tx: story.open_run(tx, where))
    story.run_sql(database, "UPDATE workspaces SET state = 'archived'")
    for method, suffix, body in CHANGES:
        if suffix == "/cancellation" or method == "DELETE":
            continue
        answer = send(api, method, where.path + suffix, body, "member")
        assert code(answer) == (409, "workspace_not_active"), suffix
    assert api.post(f"{where.path}/cancellation").status_code == 202
    assert api.delete(where.path).status_code == 204


# --- usage --------------------------------------------------------------------------------------


def summary(api, where):
    return api.get(where.path).json()["conversation"]["usage_summary"]


def test_usage_outlives_pruning_and_undo(api, database, where):
    from stenograph.retention.prune import prune

    story.rounds(database, where, ["a", "b"])
    story.direct_reply(database, where)
    before = summary(api, where)
    assert (before["request_count"], before["cost_amount"]) == (3, "0.27")
    prune(database, 0, rewrite=False)
    assert summary(api, where) == before
    story.run_sql(
        database,
        "DELETE FROM turns WHERE conversation_id = :id AND position = 1",
        id=where.conversation.id,
    )
    assert summary(api, where) == before


def test_usage_is_the_sum_of_the_receipts_that_are_there(database, where, api):
    rows = [
        (where.conversation.id, prompt, cached, cost, 1)
        for prompt, cached, cost in [(10, None, 0.5), (None, 3, None), (7, 1, 0.25)]
    ]
    names = ("conversation_id", "prompt_tokens", "cached_tokens", "cost_usd", "occurred_at")
    database.write(lambda tx: tx.insert_many("usage_receipts", names, rows))
    found = summary(api, where)
    assert (found["request_count"], found["input_tokens"], found["cache_read_tokens"]) == (3, 17, 4)
    assert (found["cost_amount"], found["cost_complete"]) == ("0.75", False)
    story.run_sql(database, "UPDATE usage_receipts SET prompt_tokens = 20 WHERE prompt_tokens = 10")
    assert summary(api, where)["input_tokens"] == 27
    story.run_sql(database, "DELETE FROM usage_receipts WHERE prompt_tokens IS NULL")
    found = summary(api, where)
    assert (found["request_count"], found["cache_read_tokens"]) == (2, 1)
    assert found["cost_complete"] is True


def test_reading_usage_looks_at_no_receipt_but_the_newest(api, database, where):
    def look():
        seen = []
        database.observer = seen.append
        assert api.get(where.path).status_code == 200
        database.observer = None
        return seen

    few = look()
    story.rounds(database, where, ["a"] * 30)
    many = look()
    assert len(many) == len(few) <= 12
    assert [sql for sql in many if "usage_receipts" in sql and "LIMIT 1" not in sql] == []


def test_a_blocked_head_holds_the_queue(api, database, org, where):
    database.write(lambda tx: story.open_run(tx, where))
    database.write(
        lambda tx: inputs.accept(tx, org.owner, where.conversation, kind="message", text="x")
    )
    held = lambda: api.get(where.path).json()["conversation"]["input_queue"]["held"]  # noqa: E731
    assert held() is False
    story.run_sql(database, "UPDATE inputs SET state = 'blocked'")
    assert held() is True
    story.run_sql(database, "UPDATE inputs SET state = 'pending'")
    story.run_sql(database, "UPDATE runs SET status = 'paused'")
    assert held() is True
