"""Workspaces and conversations: making, listing, reading (agent-api.md 2 and 3.1)."""

import re

import pytest

import story
from stenograph.conversations import conversation, workspace
from stenograph.conversations.variant import Model

BASIC = [
    "public_id", "title", "answering_user_public_id", "archived_at", "billing_subject", "parent",
    "forked_from_turn_public_id", "forked_from_variant_public_id", "source_conversation_public_id",
    "side", "active_turn_public_id", "context_revision", "last_activity_at", "created_at",
    "updated_at",
]  # fmt: skip
FULL = [
    *BASIC, "metadata", "memory_context", "input_queue", "latest_event_cursor", "context",
    "usage_summary", "default_runner", "access",
]  # fmt: skip
WHOLE_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture
def home(api):
    """The path of a workspace that the whole organization sees."""
    body = {"workspace": {"name": "Home", "access_mode": "account_wide", "metadata": {"a": [1]}}}
    made = api.post("/agent_api/v1/workspaces", json=body).json()["workspace"]
    return f"/agent_api/v1/workspaces/{made['public_id']}"


def create(api, home, key="k", **body):
    headers = {"Idempotency-Key": key}
    return api.post(f"{home}/conversations", json={"conversation": body}, headers=headers)


def test_a_workspace_has_its_documented_members(api, home, org):
    found = api.get(home).json()["workspace"]
    assert list(found) == [
        "public_id", "name", "access_mode", "state", "dedicated", "lock_version", "archived_at",
        "created_at", "updated_at", "metadata", "tool_provider_overrides", "owner", "creator",
    ]  # fmt: skip
    assert found["metadata"] == {"a": [1]}
    assert found["owner"]["public_id"] == org.owner.principal_public_id
    assert WHOLE_SECONDS.fullmatch(found["created_at"])
    (listed,) = api.get("/agent_api/v1/workspaces").json()["workspaces"]
    assert list(listed) == list(found)[:9]


def test_a_private_workspace_is_its_owners_and_members(api, database, org):
    made = database.write(lambda tx: workspace.create(tx, org.owner, "Mine", members=["agent"]))
    path = f"/agent_api/v1/workspaces/{made.public_id}"
    assert [p["handle"] for p in api.get(f"{path}/principals").json()["principals"]] == [
        "owner", "agent",
    ]  # fmt: skip
    for key, status in (("member", 200), ("member:agent", 200), ("member:admin", 404)):
        assert api.get(path, key=key).status_code == status
    assert api.get("/agent_api/v1/workspaces", key="member:admin").json()["workspaces"] == []


def test_a_member_named_a_thousand_times_is_looked_up_once(api, database):
    asked = []
    database.observer = asked.append
    body = {"workspace": {"name": "Mine", "members": ["member"] * 1_000}}
    assert api.post("/agent_api/v1/workspaces", json=body).status_code == 201
    assert len(asked) < 20


def test_everyone_belongs_to_an_account_wide_workspace(api, home):
    found = api.get(f"{home}/principals").json()["principals"]
    assert {p["handle"] for p in found} == {"owner", "agent", "admin", "member"}
    assert list(found[0]) == [
        "public_id", "handle", "kind", "display_name", "agent_identifier", "steward_public_id",
    ]  # fmt: skip


def test_a_bad_workspace_is_refused_and_leaves_nothing(api):
    for body, status, code in [
        ({}, 400, "parameter_missing"),
        ({"workspace": {}}, 400, "parameter_missing"),
        ({"workspace": {"name": 5}}, 400, "parameter_invalid"),
        ({"workspace": {"name": "x", "access_mode": "open"}}, 400, "parameter_invalid"),
        ({"workspace": {"name": " "}}, 422, "validation_failed"),
        ({"workspace": {"name": "x", "members": ["nobody"]}}, 422, "principal_not_eligible"),
    ]:
        answer = api.post("/agent_api/v1/workspaces", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert api.get("/agent_api/v1/workspaces").json()["workspaces"] == []


def test_a_new_conversation_in_full(api, home, org):
    answer = create(
        api, home, title="T", metadata={"k": {"n": 1}}, billing_subject="team-a",
        answering_user_public_id="@agent",
        access={"default": "read", "entries": [{"handle": "member", "level": "none"}]},
    )  # fmt: skip
    assert answer.status_code == 201
    assert answer.headers["Idempotency-Replayed"] == "false"
    made = answer.json()["conversation"]
    assert list(made) == FULL
    assert made["answering_user_public_id"] == org.agent.principal_public_id
    assert (made["title"], made["metadata"]) == ("T", {"k": {"n": 1}})
    assert (made["context"], made["active_turn_public_id"]) == (None, None)
    assert made["access"] == {
        "default": "read",
        "entries": [
            {
                "user_public_id": made["access"]["entries"][0]["user_public_id"],
                "handle": "member",
                "level": "none",
            }
        ],
    }
    assert made["usage_summary"] == {
        "request_count": 0, "input_tokens": 0, "cache_read_tokens": 0, "uncached_input_tokens": 0,
        "cache_creation_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0, "total_tokens": 0,
        "cost_amount": "0", "cost_complete": True, "cost_unit": "usd",
    }  # fmt: skip
    assert api.get(f"{home}/conversations/{made['public_id']}").json()["conversation"] == made


def test_a_refused_conversation_leaves_no_receipt(api, home):
    for body, code in [
        ({"answering_user_public_id": "nobody"}, "answerer_not_eligible"),
        ({"default_runner_executor_public_id": "x"}, "runner_not_eligible"),
        ({"access": {"entries": [{"handle": "x", "level": "read"}]}}, "principal_not_eligible"),
        ({"access": {"entries": [{"level": "read"}]}}, "principal_not_eligible"),
        ({"title": "x" * 256}, "validation_failed"),
        ({"metadata": {"x": "y" * 70_000}}, "validation_failed"),
    ]:
        answer = create(api, home, **body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, code)
    assert create(api, home).status_code == 201


def test_metadata_that_nobody_could_read_again_is_refused(api, home):
    for levels, status in ((190, 201), (201, 400), (940, 400), (10_000, 400)):
        deep = '{"a":' * levels + "1" + "}" * levels
        content = f'{{"conversation":{{"metadata":{deep}}}}}'
        headers = {"Idempotency-Key": f"k{levels}"}
        answer = api.post(f"{home}/conversations", content=content, headers=headers)
        assert answer.status_code == status, levels
    assert answer.json()["error"]["code"] == "bad_request"
    (made,) = api.get(f"{home}/conversations").json()["conversations"]
    assert api.get(f"{home}/conversations/{made['public_id']}").status_code == 200


def test_lists_page_in_either_order(api, database, home):
    made = [create(api, home, key=str(n)).json()["conversation"] for n in range(5)]
    ids = [one["public_id"] for one in made]

    def pages(**parameters):
        found, after = [], None
        while True:
            query = parameters | {"limit": 2} | ({} if after is None else {"after": after})
            page = api.get(f"{home}/conversations", params=query).json()
            assert all(list(one) == BASIC for one in page["conversations"])
            found += [one["public_id"] for one in page["conversations"]]
            after = page["pagination"]["next_after"]
            if after is None:
                return found

    assert pages() == ids
    assert pages(order="desc") == ids[::-1]
    story.run_sql(
        database,
        "UPDATE conversations SET last_activity_at = 5 WHERE public_id = :id",
        id=ids[3],
    )
    assert pages(order_by="last_activity_at") == [ids[3], *ids[:3], ids[4]]
    assert pages(order_by="last_activity_at", order="desc") == [ids[4], *ids[:3][::-1], ids[3]]


def test_a_bad_list_parameter_is_named(api, home):
    for query in [
        {"limit": "0"},
        {"limit": "x"},
        {"after": "junk"},
        {"order": "up"},
        {"order_by": "title"},
        {"side": "maybe"},
        {"after": "eyJpZCI6MSwiZGlyIjoiZGVzYyJ9"},
    ]:
        answer = api.get(f"{home}/conversations", params=query)
        assert answer.status_code == 400
        assert answer.json() == {
            "error": {
                "code": "parameter_invalid",
                "message": f"Invalid parameter: {next(iter(query))}",
            }
        }


def test_a_limit_above_100_counts_as_100(api, home):
    create(api, home)
    assert api.get(f"{home}/conversations", params={"limit": "5000"}).status_code == 200


def test_each_conversation_is_in_one_list(api, database, org):
    where = story.place(database, org.owner)
    home = where.path.rpartition("/")[0]
    side, child, archived = (story.another(database, where) for _ in range(3))
    sql = "UPDATE conversations SET {} WHERE id = :id"
    story.run_sql(database, sql.format("side = 1"), id=side.conversation.id)
    story.run_sql(
        database,
        sql.format("parent_id = :parent, spawn_key = 'r2t0', label = 'helper'"),
        id=child.conversation.id,
        parent=where.conversation.id,
    )
    story.archive(database, archived)

    def listed(path, **query):
        found = api.get(path, params=query).json()["conversations"]
        return [one["public_id"] for one in found]

    assert listed(home) == [where.conversation.public_id]
    assert listed(home, side="1") == [side.conversation.public_id]
    assert listed(f"{home}/archived") == [archived.conversation.public_id]
    assert listed(f"{where.path}/children") == [child.conversation.public_id]
    assert api.get(child.path).json()["conversation"]["parent"] == {
        "public_id": where.conversation.public_id,
        "spawn_node_key": "r2t0",
        "label": "helper",
    }


def test_usage_and_context_come_from_receipts(api, database, org):
    where = story.place(database, org.owner)
    story.direct_reply(database, where)
    story.rounds(database, where, ["a", "b"])
    found = api.get(where.path).json()["conversation"]
    assert found["usage_summary"] == {
        "request_count": 3, "input_tokens": 200, "cache_read_tokens": 40,
        "uncached_input_tokens": 160, "cache_creation_tokens": 0, "cache_hit_rate": 0.2,
        "output_tokens": 20, "reasoning_tokens": 0, "total_tokens": 220, "cost_amount": "0.27",
        "cost_complete": True, "cost_unit": "usd",
    }  # fmt: skip
    assert found["context"] == {
        "used_tokens": 55, "input_tokens": 50, "output_tokens": 5, "cache_read_tokens": 0,
        "window_tokens": 200_000, "used_percent": 0.0, "as_of_model": "dev/thinker",
    }  # fmt: skip


def test_the_context_of_a_model_that_nobody_knows_has_no_window(api, database, org):
    where = story.place(database, org.owner)
    story.direct_reply(database, where, model=Model("elsewhere", "m"))
    found = api.get(where.path).json()["conversation"]["context"]
    assert (found["used_tokens"], found["window_tokens"], found["used_percent"]) == (
        110,
        None,
        None,
    )


def test_a_fork_says_where_it_came_from(api, database, org):
    where = story.place(
        database,
        org.owner,
        access_default="read",
        answerer="agent",
        entries=[conversation.Entry("member", "none")],
    )
    said = story.message(database, where)
    fork = story.forked(database, where, said)
    found = api.get(fork.path).json()["conversation"]
    assert found["forked_from_turn_public_id"] == said.turn.public_id
    assert found["forked_from_variant_public_id"] == said.variant.public_id
    assert found["source_conversation_public_id"] == where.conversation.public_id
    assert found["answering_user_public_id"] == org.agent.principal_public_id
    assert found["access"]["default"] == "read"
    # Who made it and who answers in it are never listed.
    levels = {entry["handle"]: entry["level"] for entry in found["access"]["entries"]}
    assert levels == {"member": "none"}


def test_busy_is_told(api, database, org):
    where = story.place(database, org.owner)
    said = database.write(lambda tx: story.open_run(tx, where))
    found = api.get(where.path).json()["conversation"]
    assert found["active_turn_public_id"] == said.turn.public_id
    database.write(lambda tx: story.finish(tx, said))
    assert api.get(where.path).json()["conversation"]["active_turn_public_id"] is None
