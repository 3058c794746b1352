"""Stored reasoning: seeds/stored-conversation-reasoning.md, and every case of agent-api.md 5."""

import pytest

import story
from stenograph.clock import DAY, now
from stenograph.conversations import conversation, variant
from stenograph.http import paging
from stenograph.retention.prune import prune
from stenograph.runs import invocation, task
from stenograph.runs.invocation import Usage

THINKER = {
    "provider_id": "dev",
    "model_ref": "thinker",
    "reasoning_effort": "low",
    "reasoning_enabled": True,
}


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


def keys(answer):
    return [item["task_key"] for item in answer.json()["items"]]


def test_a_direct_reply_is_one_item_without_encrypted_material(api, database, where):
    said = story.direct_reply(database, where)
    answer = api.get(where.reasoning(said))
    assert answer.status_code == 200
    assert answer.json() == {
        "items": [{"model": THINKER, "available": True, "text": "I add the numbers."}],
        "pagination": {"next_before": None, "has_older": False},
    }


def test_a_direct_reply_ignores_a_valid_cursor_and_refuses_a_bad_one(api, database, where):
    said = story.direct_reply(database, where)
    good = api.get(where.reasoning(said), params={"before": paging.task_cursor(1)})
    assert len(good.json()["items"]) == 1
    assert good.json()["pagination"] == {"next_before": None, "has_older": False}
    assert api.get(where.reasoning(said), params={"before": "junk"}).status_code == 400


@pytest.mark.parametrize("reasoning", ["Adopted only when settled.", None])
def test_a_reply_that_nobody_adopted_yet_has_nothing_available(api, database, where, reasoning):
    said = story.direct_reply(database, where, reasoning=reasoning, settled=False)
    assert api.get(where.reasoning(said)).json()["items"] == [
        {"model": THINKER, "available": False}
    ]


def test_model_omits_what_is_not_known_and_keeps_false(api, database, where):
    off = variant.Model("dev", "plain", False, None)
    said = story.direct_reply(database, where, model=off)
    (item,) = api.get(where.reasoning(said)).json()["items"]
    assert item["model"] == {
        "provider_id": "dev",
        "model_ref": "plain",
        "reasoning_enabled": False,
    }


def test_a_message_has_no_reasoning(api, database, where):
    said = story.message(database, where)
    assert api.get(where.reasoning(said)).json() == {
        "items": [],
        "pagination": {"next_before": None, "has_older": False},
    }
    assert api.get(where.reasoning(said), params={"limit": "0"}).status_code == 400


def test_a_run_shows_branches_and_textless_tasks_not_hidden_or_unstarted_ones(api, database, where):
    said = story.branched(database, where)
    answer = api.get(where.reasoning(said)).json()
    assert answer == {
        "items": [
            {
                "task_key": "r1",
                "model": THINKER,
                "available": True,
                "text": "First I list the files.",
            },
            {
                "task_key": "r2t0-model-1",
                "model": {"provider_id": "dev", "model_ref": "small"},
                "available": False,
            },
            {"task_key": "r3", "model": THINKER, "available": False},
        ],
        "pagination": {"next_before": None, "has_older": False},
    }


def test_nothing_native_or_superseded_is_in_the_answer(api, database, where):
    said = story.branched(database, where)
    text = api.get(where.reasoning(said)).text
    for word in ("superseded", "c2VjcmV0", "provider response", "hidden thought", "never kept"):
        assert word not in text


def test_pages_go_back_from_the_newest_and_each_is_in_order_of_creation(api, database, where):
    said = story.branched(database, where)
    first = api.get(where.reasoning(said), params={"limit": 2})
    assert keys(first) == ["r2t0-model-1", "r3"]
    cursor = first.json()["pagination"]["next_before"]
    assert first.json()["pagination"]["has_older"] is True
    second = api.get(where.reasoning(said), params={"limit": 2, "before": cursor})
    assert keys(second) == ["r1"]
    assert second.json()["pagination"] == {"next_before": None, "has_older": False}


def test_a_cursor_is_opaque_and_starts_over_at_zero(api, database, where):
    said = story.rounds(database, where, ["a", "b", "c"])
    page = api.get(where.reasoning(said), params={"limit": 1}).json()
    assert not page["pagination"]["next_before"].isdigit()
    start = api.get(where.reasoning(said), params={"before": paging.task_cursor(0)})
    blank = api.get(where.reasoning(said), params={"before": ""})
    assert keys(start) == keys(blank) == ["r1", "r2", "r3"]


def test_a_hundred_and_one_tasks_at_limit_100(api, database, where):
    said = story.rounds(database, where, [f"thought {n}" for n in range(101)])
    first = api.get(where.reasoning(said), params={"limit": 100})
    assert keys(first) == [f"r{n}" for n in range(2, 102)]
    older = first.json()["pagination"]["next_before"]
    second = api.get(where.reasoning(said), params={"limit": 100, "before": older})
    assert keys(second) == ["r1"]
    assert second.json()["pagination"]["has_older"] is False


def test_a_page_of_exactly_the_limit_has_nothing_older(api, database, where):
    said = story.rounds(database, where, ["a", "b"])
    page = api.get(where.reasoning(said), params={"limit": 2}).json()
    assert page["pagination"] == {"next_before": None, "has_older": False}


def test_the_default_page_is_20(api, database, where):
    said = story.rounds(database, where, ["a"] * 21)
    answer = api.get(where.reasoning(said))
    assert keys(answer) == [f"r{n}" for n in range(2, 22)]
    assert answer.json()["pagination"]["has_older"] is True


def test_a_bad_limit_is_named(api, database, where):
    said = story.rounds(database, where, ["a"])
    for limit in ["0", "101", "", "abc", "5.0", "-1", "99999999999999999999"]:
        answer = api.get(where.reasoning(said), params={"limit": limit})
        assert answer.status_code == 400
        assert answer.json() == {
            "error": {"code": "parameter_invalid", "message": "Invalid parameter: limit"}
        }


def test_a_limit_that_ruby_reads_is_read(api, database, where):
    said = story.rounds(database, where, ["a", "b"])
    for limit in [" 1", "+1", "1 ", "0_1"]:
        assert keys(api.get(where.reasoning(said), params={"limit": limit})) == ["r2"]


def test_a_bad_cursor_is_named(api, database, where):
    said = story.rounds(database, where, ["a"])
    for before in [
        "412",
        "junk!",
        paging.event_cursor(3),
        paging.encode(b"altr:-1"),
        paging.encode(b"altr:x"),
        paging.encode(b"altr:"),
        paging.encode(b"altr:5") + "==",
        paging.encode(b"altr:99999999999999999999"),
    ]:
        answer = api.get(where.reasoning(said), params={"before": before})
        assert answer.status_code == 400
        assert answer.json() == {
            "error": {"code": "parameter_invalid", "message": "Invalid parameter: before"}
        }


def test_new_work_is_on_a_fresh_first_page(api, database, where):
    def start(tx):
        said = story.open_run(tx, where)
        story.think(tx, said, task.add_round(tx, said.run), "one")
        return said

    said = database.write(start)
    assert keys(api.get(where.reasoning(said))) == ["r1"]
    database.write(lambda tx: story.think(tx, said, task.add_round(tx, said.run), "two"))
    assert keys(api.get(where.reasoning(said))) == ["r1", "r2"]


def test_a_task_under_way_is_there_without_text(api, database, where):
    def start(tx):
        said = story.open_run(tx, where)
        invocation.select(tx, said.run, task.add_round(tx, said.run), story.THINKER)
        return said

    said = database.write(start)
    assert api.get(where.reasoning(said)).json()["items"] == [
        {"task_key": "r1", "model": THINKER, "available": False}
    ]


def test_text_is_whole(api, database, where):
    long = "thought \u00e9\U0001f600\x00 " * 20_000
    said = story.rounds(database, where, [long])
    assert api.get(where.reasoning(said)).json()["items"][0]["text"] == long


def test_any_candidate_reads_active_or_not_whatever_its_status(api, database, where):
    said = story.rounds(database, where, ["first"])
    other = database.write(
        lambda tx: variant.add(tx, said.turn, source="edit", status="failed", content="x")
    )
    failed = story.Said(said.turn, other)
    assert api.get(where.reasoning(failed)).json()["items"] == []
    assert api.get(where.reasoning(said)).json()["items"][0]["text"] == "first"


def test_read_reads_none_and_executors_do_not(api, database, org):
    where = story.place(
        database,
        org.owner,
        access_default="none",
        entries=[conversation.Entry("@member", "read")],
    )
    said = story.direct_reply(database, where)
    assert api.get(where.reasoning(said), key="member:member").status_code == 200
    assert api.get(where.reasoning(said), key="member:admin").status_code == 404
    refused = api.get(where.reasoning(said), key="executor")
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="stenograph"'
    assert refused.json()["error"]["code"] == "unauthorized"


def test_an_archived_conversation_reads(api, database, where):
    said = story.direct_reply(database, where)
    story.archive(database, where)
    assert api.get(where.reasoning(said)).status_code == 200


def test_an_unrelated_turn_or_variant_is_not_found(api, database, where):
    said, other = story.direct_reply(database, where), story.message(database, where)
    elsewhere = story.another(database, where)
    foreign = story.direct_reply(database, elsewhere)
    for path in (
        where.reasoning(foreign),
        elsewhere.reasoning(said),
        where.reasoning(story.Said(said.turn, other.variant)),
    ):
        answer = api.get(path)
        assert answer.status_code == 404
        assert answer.json() == {"error": {"code": "not_found", "message": "Not found"}}


@pytest.mark.parametrize("visibility", ["hidden", "excluded_from_context"])
def test_a_hidden_turn_reads_by_its_known_identity(api, database, where, visibility):
    said = story.direct_reply(database, where)
    state = {"turn": {"visibility": visibility}}
    assert api.patch(where.turn(said), json=state).status_code == 200
    assert api.get(where.reasoning(said)).status_code == 200


def test_a_concealed_turn_or_variant_is_not_found(api, database, where):
    said = story.direct_reply(database, where)
    second = database.write(
        lambda tx: variant.add(tx, said.turn, source="edit", status="completed", content="5")
    )
    story.message(database, where)
    concealed = {"variant": {"concealed": True}}
    assert api.patch(where.variant(said), json=concealed).status_code == 200
    assert api.get(where.reasoning(said)).status_code == 404
    edited = story.Said(said.turn, second)
    assert api.get(where.reasoning(edited)).status_code == 200
    assert api.patch(where.turn(said), json={"turn": {"concealed": True}}).status_code == 200
    assert api.get(where.reasoning(edited)).status_code == 404


def test_a_fork_reads_inherited_reasoning_and_each_side_conceals_for_itself(api, database, where):
    said = story.rounds(database, where, ["shared thought"])
    tip = story.message(database, where)
    fork, other = story.forked(database, where, tip), story.forked(database, where, tip)
    assert api.get(fork.reasoning(said)).json() == api.get(where.reasoning(said)).json()

    assert api.patch(fork.turn(said), json={"turn": {"concealed": True}}).json() == {
        "turn": {"public_id": said.turn.public_id, "inherited": True}
    }
    assert api.get(fork.reasoning(said)).status_code == 404
    assert api.get(where.reasoning(said)).status_code == 200
    assert api.get(other.reasoning(said)).status_code == 200

    assert api.patch(where.turn(said), json={"turn": {"concealed": True}}).status_code == 200
    assert api.get(where.reasoning(said)).status_code == 404
    assert api.get(other.reasoning(said)).status_code == 200


def test_a_fork_needs_access_to_the_fork_alone(api, database, org):
    where = story.place(
        database,
        org.owner,
        access_default="none",
        entries=[conversation.Entry("member", "full")],
    )
    said, tip = story.rounds(database, where, ["shared"]), story.message(database, where)
    fork = story.forked(database, where, tip)
    story.run_sql(
        database,
        "DELETE FROM conversation_access WHERE conversation_id = :id",
        id=where.conversation.id,
    )
    assert api.get(where.reasoning(said), key="member:member").status_code == 404
    assert api.get(fork.reasoning(said), key="member:member").status_code == 200


def test_a_fork_does_not_reach_past_its_boundary(api, database, where):
    early, point = story.message(database, where), story.message(database, where)
    late = story.rounds(database, where, ["after the fork"])
    fork = story.forked(database, where, point)
    assert api.get(fork.reasoning(early)).status_code == 200
    # The turn at the fork point is adopted as the fork's own, with an id of its own.
    assert api.get(fork.reasoning(point)).status_code == 404
    assert api.get(fork.reasoning(late)).status_code == 404


def test_concealing_a_variant_hides_it_from_forks_too(api, database, where):
    said = story.rounds(database, where, ["shared"])
    database.write(
        lambda tx: variant.add(tx, said.turn, source="edit", status="completed", content="b")
    )
    fork = story.forked(database, where, story.message(database, where))
    assert api.get(fork.reasoning(said)).status_code == 200
    api.patch(where.variant(said), json={"variant": {"concealed": True}})
    assert api.get(fork.reasoning(said)).status_code == 404


def test_an_adopted_reply_carries_its_own_reasoning(api, database, where):
    said = story.direct_reply(database, where)
    fork = story.forked(database, where, said)
    (adopted,) = api.get(f"{fork.path}/turns").json()["turns"]
    active = adopted["active_variant"]
    assert active["source"] == "fork"
    assert active["origin_variant_public_id"] == said.variant.public_id
    path = f"{fork.path}/turns/{adopted['public_id']}/variants/{active['public_id']}/reasoning"
    assert api.get(path).json() == api.get(where.reasoning(said)).json()


def test_pruned_details_are_gone_for_runs_and_for_replies(api, database, where):
    ran = story.rounds(database, where, ["a"])
    replied = story.direct_reply(database, where)
    silent = story.rounds(database, where, [None])
    assert api.get(where.reasoning(silent)).json()["items"][0]["available"] is False
    story.run_sql(database, "UPDATE runs SET completed_at = :at", at=now() - 2 * DAY)
    story.run_sql(database, "UPDATE invocations SET terminal_at = :at", at=now() - 2 * DAY)
    prune(database, 1, rewrite=False)
    for said in (ran, replied, silent):
        answer = api.get(where.reasoning(said))
        assert answer.status_code == 410
        assert answer.json()["error"]["code"] == "execution_details_pruned"


def test_reading_changes_nothing(api, database, where):
    said = story.branched(database, where)
    before = api.get(f"{where.path}/events").json()["pagination"]["watermark"]
    seen = []
    database.observer = seen.append
    api.get(where.reasoning(said))
    database.observer = None
    writing = ("UPDATE", "SHARE", "INSERT", "DELETE")
    assert seen
    assert [sql for sql in seen if any(word in sql for word in writing)] == []
    assert api.get(f"{where.path}/events").json()["pagination"]["watermark"] == before


def test_a_selected_call_that_vanished_is_dropped_and_still_counts(api, database, where):
    said = story.rounds(database, where, ["a", "b", "c"])
    story.run_sql(
        database,
        "DELETE FROM invocations WHERE task_id = (SELECT max(id) FROM tasks"
        " WHERE kind = 'model_task')",
    )
    page = api.get(where.reasoning(said), params={"limit": 2}).json()
    assert [item["task_key"] for item in page["items"]] == ["r2"]
    assert page["pagination"]["has_older"] is True


def test_usage_outlives_nothing_of_a_failed_call_but_its_cost(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        round = task.add_round(tx, said.run)
        call = invocation.select(tx, said.run, round, story.THINKER)
        invocation.settle(
            tx, call, "failed", reasoning="refused thought", usage=Usage(prompt_tokens=7)
        )
        return said

    said = database.write(make)
    assert api.get(where.reasoning(said)).json()["items"][0]["available"] is False
    summary = api.get(where.path).json()["conversation"]["usage_summary"]
    assert (summary["input_tokens"], summary["cost_complete"]) == (7, False)
