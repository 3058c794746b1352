"""Turns and candidates: windows, view state, decks, activation (agent-api.md 3.3)."""

import pytest

import story
from stenograph.conversations import variant
from stenograph.runs import invocation, run, task


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


def positions(api, where, **query):
    page = api.get(f"{where.path}/turns", params=query).json()
    found = [turn["position"] for turn in page["turns"]]
    assert page["pagination"] == {
        "before_position": found[0] if found else None,
        "after_position": found[-1] if found else None,
    }
    return found


def test_windows_of_positions(api, database, where):
    for _ in range(25):
        story.message(database, where)
    assert positions(api, where) == list(range(20))
    assert positions(api, where, limit=100) == list(range(25))
    assert positions(api, where, after_position=20) == [21, 22, 23, 24]
    assert positions(api, where, after_position=24) == []
    assert positions(api, where, after_position=0, limit=2) == [1, 2]
    assert positions(api, where, before_position=20, limit=3) == [17, 18, 19]
    assert positions(api, where, before_position=0) == []
    assert positions(api, where, before_position=2**31 - 1, limit=2) == [23, 24]


def test_bad_window_parameters(api, where):
    for query, named in [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"after_position": "-1"}, "after_position"),
        ({"after_position": str(2**31)}, "after_position"),
        ({"before_position": "x"}, "before_position"),
        ({"before_position": "5", "after_position": "1"}, "before_position"),
        ({"include_hidden": "maybe"}, "include_hidden"),
    ]:
        answer = api.get(f"{where.path}/turns", params=query)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == f"Invalid parameter: {named}"


def test_hidden_and_concealed_turns_and_the_windows_around_them(api, database, where):
    said = [story.message(database, where) for _ in range(6)]
    api.patch(where.turn(said[1]), json={"turn": {"visibility": "hidden"}})
    api.patch(where.turn(said[2]), json={"turn": {"visibility": "excluded_from_context"}})
    api.patch(where.turn(said[3]), json={"turn": {"concealed": True}})
    assert positions(api, where) == [0, 2, 4, 5]
    assert positions(api, where, include_hidden="1") == [0, 1, 2, 4, 5]
    assert positions(api, where, before_position=5, limit=2) == [2, 4]
    assert positions(api, where, after_position=2, limit=1) == [4]
    assert api.get(where.turn(said[1])).status_code == 404
    assert api.get(where.turn(said[1]), params={"include_hidden": "true"}).status_code == 200
    assert api.get(where.turn(said[3]), params={"include_hidden": "true"}).status_code == 404
    assert api.get(where.turn(said[1]) + "/variants").status_code == 200
    assert api.get(where.turn(said[3]) + "/variants").status_code == 404


def test_a_concealed_turn_comes_back(api, database, where):
    said = story.message(database, where)
    story.message(database, where)
    for concealed, status in ((True, 404), (True, 404), (False, 200)):
        answer = api.patch(where.turn(said), json={"turn": {"concealed": concealed}})
        assert answer.json() == {"turn": {"public_id": said.turn.public_id, "inherited": False}}
        assert api.get(where.turn(said)).status_code == status
    events = api.get(f"{where.path}/events").json()["events"]
    told = [event["payload"] for event in events if event["type"] == "soft_delete"]
    assert [payload["concealed"] for payload in told] == [True, False]
    assert {payload["turn_public_id"] for payload in told} == {said.turn.public_id}


def test_the_apex_never_conceals_unless_a_fork_shows_it(api, database, where):
    said = story.message(database, where)
    conceal = {"turn": {"concealed": True}}
    answer = api.patch(where.turn(said), json=conceal)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "apex_never_conceals")
    assert api.patch(where.turn(said), json={"turn": {"visibility": "hidden"}}).status_code == 200
    fork = story.another(database, where)
    story.run_sql(
        database,
        "INSERT INTO ancestries VALUES (:fork, 1, :source, 0)",
        fork=fork.conversation.id,
        source=where.conversation.id,
    )
    assert api.patch(where.turn(said), json=conceal).status_code == 200
    assert api.get(f"{fork.path}/turns/{said.turn.public_id}").status_code == 200


def test_a_bad_view_state(api, database, where):
    for body, code in [
        ({}, "parameter_missing"),
        ({"turn": {}}, "parameter_missing"),
        ({"turn": {"visibility": "gone"}}, "parameter_invalid"),
        ({"turn": {"concealed": "yes"}}, "parameter_invalid"),
    ]:
        said = story.message(database, where)
        answer = api.patch(where.turn(said), json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


def test_a_turn_of_a_run_shows_its_rounds_and_its_newest_model(api, database, where):
    said = story.branched(database, where)
    turn = api.get(where.turn(said)).json()["turn"]
    assert list(turn) == [
        "public_id", "callback_sources", "position", "kind", "role", "status", "visibility",
        "inherited", "origin", "active_variant", "created_at",
    ]  # fmt: skip
    assert turn["active_variant"] == {
        "public_id": said.variant.public_id,
        "source": "run",
        "status": "running",
        "model": {
            "provider_id": "dev", "model_ref": "thinker", "reasoning_effort": "low",
            "reasoning_enabled": True,
        },
        "prompt_text": "Look around.",
        "run_public_id": said.run.public_id,
        "rounds": [
            {
                "task_key": "r1", "status": "completed", "visibility": "visible",
                "text_preview": "I look.",
            },
            {"task_key": "r2", "status": "waiting", "visibility": "visible"},
            {"task_key": "r3", "status": "failed", "visibility": "collapsed"},
        ],
        "runner_effects": {"status": "untouched", "runners": []},
        "memory_context": None,
    }  # fmt: skip


def test_a_preview_is_140_characters(api, database, where):
    said = story.message(database, where, "\U0001f600" * 200)
    active = api.get(where.turn(said)).json()["turn"]["active_variant"]
    assert active["content_preview"] == "\U0001f600" * 140
    assert active["content"] == "\U0001f600" * 200


def test_a_running_candidate_stands_beside_the_active_one(api, database, where):
    said = story.rounds(database, where, ["a"])
    running = database.write(
        lambda tx: variant.add(tx, said.turn, source="run", status="running", activate=False)
    )
    (turn,) = api.get(f"{where.path}/turns").json()["turns"]
    assert turn["active_variant"]["public_id"] == said.variant.public_id
    assert turn["running_variant"]["public_id"] == running.public_id
    assert turn["status"] == "completed"


def test_the_deck_and_its_candidates(api, database, where):
    said = story.rounds(database, where, ["a"])
    edit = database.write(
        lambda tx: variant.add(tx, said.turn, source="edit", status="completed", content="b")
    )
    deck = api.get(where.turn(said) + "/variants").json()
    assert deck["turn"] == {"public_id": said.turn.public_id, "inherited": False}
    assert [(v["public_id"], v["source"], v["active"]) for v in deck["variants"]] == [
        (said.variant.public_id, "run", False),
        (edit.public_id, "edit", True),
    ]
    conceal = {"variant": {"concealed": True}}
    active = story.Said(said.turn, edit)
    refused = api.patch(where.variant(active), json=conceal)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "variant_active")
    assert api.patch(where.variant(said), json=conceal).status_code == 200
    shown = api.get(where.turn(said) + "/variants").json()["variants"]
    assert [v["public_id"] for v in shown] == [edit.public_id]
    back = api.patch(where.variant(said), json={"variant": {"concealed": False}})
    assert back.json()["variant"]["public_id"] == said.variant.public_id
    assert len(api.get(where.turn(said) + "/variants").json()["variants"]) == 2


def test_activation_shows_another_settled_candidate(api, database, where):
    said = story.rounds(database, where, ["a"])
    database.write(
        lambda tx: variant.add(tx, said.turn, source="edit", status="failed", content=None)
    )
    answer = api.post(where.variant(said) + "/activation")
    assert answer.status_code == 200
    assert answer.json()["variant"]["active"] is True
    turn = api.get(where.turn(said)).json()["turn"]
    assert turn["active_variant"]["public_id"] == said.variant.public_id
    assert turn["status"] == "completed"
    assert api.post(where.variant(said) + "/activation").status_code == 200


def test_activation_of_what_is_under_way_is_refused(api, database, where):
    said = story.rounds(database, where, ["a"])
    running = database.write(
        lambda tx: variant.add(tx, said.turn, source="run", status="running", activate=False)
    )
    answer = api.post(where.variant(story.Said(said.turn, running)) + "/activation")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "variant_not_active")


def test_activation_ends_the_replaced_candidates_work_for_good(api, database, where):
    def make(tx):
        said = story.open_run(tx, where)
        invocation.select(tx, said.run, task.add_round(tx, said.run), story.THINKER)
        done = variant.add(
            tx, said.turn, source="edit", status="completed", content="b", activate=False
        )
        return said, story.Said(said.turn, done)

    said, done = database.write(make)
    assert api.post(where.variant(done) + "/activation").status_code == 200
    with database.read() as tx:
        _, ended = run.find(tx, where.caller, where.workspace.public_id, said.run.public_id)
        assert (ended.status, ended.failure_reason) == ("canceled", "replaced")
        assert task.find(tx, ended, "r1").status == "canceled"
    found = api.get(where.path).json()["conversation"]
    assert found["active_turn_public_id"] is None
    deck = api.get(where.turn(said) + "/variants").json()["variants"]
    assert [(v["status"], v["active"]) for v in deck] == [
        ("canceled", False),
        ("completed", True),
    ]


def test_the_content_of_an_inherited_turn_is_its_owners(api, database, where):
    said = story.rounds(database, where, ["a"])
    database.write(
        lambda tx: variant.add(tx, said.turn, source="edit", status="completed", content="b")
    )
    fork = story.forked(database, where, story.message(database, where))
    for answer in (
        api.patch(fork.variant(said), json={"variant": {"concealed": True}}),
        api.post(fork.variant(said) + "/activation"),
    ):
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "not_authorized"
    assert api.get(fork.turn(said) + "/variants").json()["turn"]["inherited"] is True


def test_requests_are_sealed_or_not_and_pruned(api, database, where):
    replied = story.direct_reply(database, where)
    ran = story.rounds(database, where, ["a", "b"])
    said = story.message(database, where)
    assert api.get(where.variant(replied) + "/request").json() == {
        "request": {
            "entries": [{"role": "user", "content": "2 + 2?"}],
            "request_options": {"temperature": 0},
        }
    }
    assert api.get(where.variant(ran) + "/request").json()["request"]["entries"] == [
        {"role": "user", "content": "for r1"}
    ]
    missing = api.get(where.variant(said) + "/request")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "request_not_sealed")
    story.run_sql(database, "UPDATE runs SET details_pruned_at = 60000000")
    story.run_sql(
        database,
        "UPDATE variants SET details_pruned_at = 60000000 WHERE source = 'inference'",
    )
    for pruned in (replied, ran):
        answer = api.get(where.variant(pruned) + "/request")
        assert (answer.status_code, answer.json()["error"]["code"]) == (
            410,
            "execution_details_pruned",
        )
        active = api.get(where.turn(pruned)).json()["turn"]["active_variant"]
        assert active["details_pruned_at"] == "1970-01-01T00:01:00Z"
        assert active["runner_effects"] == {
            "status": "unavailable",
            "runners": [],
            "reason": "execution_details_pruned",
        }
