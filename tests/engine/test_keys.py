"""Whose key a model is called with, and that it is so again when it answers anew."""

import pytest

from engine.driving import scene
from stenograph.accounts import provider_credential
from stenograph.accounts.provider_credential import Private
from stenograph.conversations import access, variant
from stenograph.engine import start
from stenograph.engine.keys import resolver
from stenograph.engine.models.catalog import ModelId
from stenograph.engine.models.credentials import Credentials
from stenograph.engine.models.failures import ModelFailedError

ENDPOINTS = {"shed": "http://shed.example/v1"}
SERVERS = {"OPENAI_API_KEY": "sk-servers", "STENO_OPENAI_BASE_URL": "http://gateway.example/v1"}


@pytest.fixture
def keys(database, org, sealer):
    """Ask for credentials of the owner's organization."""

    class Keys:
        def put(self, provider_id="openai", by=org.owner, **members):
            database.write(
                lambda tx: provider_credential.put(tx, by, sealer, provider_id, Private(**members))
            )

        def find(self, environment, provider_id="openai", *, byok=False, by=org.owner):
            find = resolver(database, sealer, environment, ENDPOINTS)
            return find(by.organization_id, ModelId(provider_id, "m", byok))

    return Keys()


def test_the_servers_key_comes_first_unless_the_own_is_asked_for(keys):
    keys.put(api_key="sk-own")
    servers = keys.find(SERVERS)
    assert (servers.api_key, servers.base_url) == ("sk-servers", "http://gateway.example/v1")
    # The own key goes to the provider, not to where the server's goes.
    assert keys.find(SERVERS, byok=True) == Credentials(api_key="sk-own")
    assert keys.find({}) == Credentials(api_key="sk-own")


def test_an_own_address_is_used_with_the_own_key_only(keys):
    keys.put(api_key="sk-own", base_url="http://theirs.example/v1")
    assert keys.find(SERVERS).base_url == "http://gateway.example/v1"
    own = keys.find(SERVERS, byok=True)
    assert (own.api_key, own.base_url) == ("sk-own", "http://theirs.example/v1")


def test_an_endpoint_of_the_settings_takes_an_own_key(keys):
    assert keys.find({}, "shed").base_url == "http://shed.example/v1"
    keys.put("shed", api_key="sk-own")
    assert keys.find({}, "shed", byok=True) == Credentials("sk-own", "http://shed.example/v1")


@pytest.mark.parametrize(("environment", "byok"), [({}, False), ({}, True), (SERVERS, True)])
def test_a_missing_key_is_a_failure_before_anything_is_asked(keys, org, environment, byok):
    keys.put(by=org.stranger, api_key="sk-theirs")
    with pytest.raises(ModelFailedError) as missing:
        keys.find(environment, byok=byok)
    assert missing.value.kind == "unauthorized"
    assert not missing.value.retryable


def test_half_a_key_is_none(keys):
    keys.put("bedrock", aws_access_key_id="AKIA", aws_region="eu-west-1")
    with pytest.raises(ModelFailedError):
        keys.find({}, "bedrock", byok=True)


def test_a_key_that_cannot_be_opened_is_missing(keys, database):
    keys.put(api_key="sk-own")
    database.write(
        lambda tx: tx.run("UPDATE provider_credentials SET ciphertext = :x", x=b"x" * 40)
    )
    with pytest.raises(ModelFailedError, match="set again"):
        keys.find({})
    assert keys.find(SERVERS).api_key == "sk-servers"


def test_a_session_without_a_key_says_so(driven, sealer):
    driven.open("hello", model="byok:openai:gpt-5")
    driven.credentials = resolver(driven.database, sealer, SERVERS, ENDPOINTS)
    driven.settle()
    facts = driven.rows("SELECT status, error_class FROM sessions")
    assert facts == [("error", "agent_model_key_missing")]
    assert driven.rows("SELECT status, provider_id FROM invocations") == [("failed", "openai")]


@pytest.mark.parametrize("wish", ["byok:dev:thinker", "dev/thinker"])
def test_a_model_answers_anew_with_the_key_that_was_asked_for(driven, wish):
    asked: list[ModelId] = []

    def find(organization_id: int, model: ModelId) -> Credentials:
        asked.append(model)
        return Credentials()

    driven.credentials = find
    session_id = driven.open(scene('[[round]]\nsay = "yes"\n'), model=wish)
    driven.settle()

    def again(tx):
        turn_id, workspace = tx.row(
            "SELECT t.public_id, w.public_id FROM turns t JOIN conversations c"
            " ON c.id = t.conversation_id JOIN workspaces w ON w.id = c.workspace_id"
        )
        conversation = access.find(tx, driven.owner, workspace, session_id)
        return start.regenerate(tx, driven.owner, conversation, turn_id)

    sent = driven.write(again)
    driven.settle()
    byok = wish.startswith("byok:")
    assert asked == [ModelId("dev", "thinker", byok)] * 2
    found = driven.read(lambda tx: variant.find(tx, sent.turn, sent.variant.public_id))
    assert (found.model.provider_id, found.model.byok) == ("dev", byok)
