"""Which failure of the reasoning route wins, for each pair that follow each other (section 5)."""

import pytest

import story
from serving import Api
from stenograph.conversations import variant
from stenograph.settings import Settings

NOWHERE = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def where(database, org):
    return story.place(database, org.owner)


@pytest.fixture
def said(database, where):
    """A turn of a run with a second candidate, and a newer turn, so that all may be concealed."""
    made = story.rounds(database, where, ["a"])
    database.write(
        lambda tx: variant.add(tx, made.turn, source="edit", status="completed", content="b")
    )
    story.message(database, where)
    return made


def code(answer):
    return answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["message"]


def conceal_variant(api, where, said):
    assert api.patch(where.variant(said), json={"variant": {"concealed": True}}).status_code == 200


def prune(database):
    story.run_sql(database, "UPDATE runs SET details_pruned_at = 1")
    story.run_sql(database, "UPDATE variants SET details_pruned_at = 1")


def test_the_rate_before_the_credential(database, org, sealer, tmp_path, where, said):
    strict = Settings(data=tmp_path, agent_requests_per_minute=1, agent_address_factor=1)
    api = Api(database, org, strict, sealer)
    assert api.get(where.reasoning(said), key="nonsense").status_code == 401
    answer = api.get(where.reasoning(said), key="nonsense")
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "60"
    api.close()


def test_the_credential_before_the_workspace(api, where, said):
    path = where.reasoning(said).replace(where.workspace.public_id, NOWHERE)
    assert api.get(path, key="executor").status_code == 401
    assert api.get(path).status_code == 404


@pytest.mark.parametrize("parameters", [{"before": "junk"}, {"limit": "0"}])
def test_what_is_not_there_before_what_is_badly_asked(api, where, said, parameters):
    for missing in (
        where.workspace.public_id,
        where.conversation.public_id,
        said.turn.public_id,
        said.variant.public_id,
    ):
        path = where.reasoning(said).replace(missing, NOWHERE)
        assert code(api.get(path, params=parameters))[:2] == (404, "not_found")


def test_the_conversation_before_the_marker(api, database, where, said):
    prune(database)
    story.tombstone(database, where)
    assert api.get(where.reasoning(said)).status_code == 404


def test_a_concealed_turn_before_a_concealed_variant_before_the_marker(api, database, where, said):
    prune(database)
    assert api.get(where.reasoning(said)).status_code == 410
    conceal_variant(api, where, said)
    concealed_variant = api.get(where.reasoning(said))
    assert concealed_variant.status_code == 404
    assert api.patch(where.turn(said), json={"turn": {"concealed": True}}).status_code == 200
    assert api.get(where.reasoning(said)).content == concealed_variant.content


@pytest.mark.parametrize("marked", ["runs", "variants"])
def test_either_marker_before_the_cursor_and_the_limit(api, database, where, said, marked):
    story.run_sql(database, f"UPDATE {marked} SET details_pruned_at = 1")
    for parameters in ({"before": "junk"}, {"limit": "0"}, {"before": "junk", "limit": "0"}):
        answer = api.get(where.reasoning(said), params=parameters)
        assert code(answer)[:2] == (410, "execution_details_pruned")


def test_the_cursor_before_the_limit(api, where, said):
    answer = api.get(where.reasoning(said), params={"limit": "0", "before": "junk"})
    assert code(answer) == (400, "parameter_invalid", "Invalid parameter: before")
    answer = api.get(where.reasoning(said), params={"limit": "0", "before": ""})
    assert code(answer) == (400, "parameter_invalid", "Invalid parameter: limit")


def test_a_message_checks_its_parameters_too(api, database, where):
    said = story.message(database, where)
    answer = api.get(where.reasoning(said), params={"limit": "0", "before": "junk"})
    assert code(answer) == (400, "parameter_invalid", "Invalid parameter: before")
