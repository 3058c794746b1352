"""An organization's own keys for models: sealed, replaced whole, and only at home."""

import pytest

from stenograph.accounts import provider_credential
from stenograph.accounts.provider_credential import Private
from stenograph.errors import ForbiddenError, InvalidInputError, NotFoundError
from stenograph.storage.sealing import SealError

KEY = "sk-hunter2"


@pytest.fixture
def keys(database, org, sealer):
    """Put, delete, list and open keys, as the owner unless said otherwise."""

    class Keys:
        def put(self, provider_id="openai", by=org.owner, **members):
            private = Private(**members)
            return database.write(
                lambda tx: provider_credential.put(tx, by, sealer, provider_id, private)
            )

        def delete(self, provider_id="openai", by=org.owner):
            database.write(lambda tx: provider_credential.delete(tx, by, provider_id))

        def listed(self, by=org.owner):
            with database.read() as tx:
                return provider_credential.listed(tx, by, sealer)

        def private(self, by=org.owner, provider_id="openai"):
            with database.read() as tx:
                return provider_credential.private(tx, sealer, by.organization_id, provider_id)

    return Keys()


def test_a_key_is_known_by_what_it_consists_of(keys, database):
    made = keys.put(api_key=KEY, base_url="https://gateway.example/v1")
    assert (made.provider_id, made.base_url, made.given) == (
        "openai", "https://gateway.example/v1", ("api_key",),
    )  # fmt: skip
    aws = keys.put(
        "bedrock", aws_access_key_id="AKIA", aws_secret_access_key=KEY, aws_region="eu-west-1"
    )
    assert aws.given == ("aws_access_key_id", "aws_secret_access_key")
    assert keys.listed() == [aws, made]
    assert keys.private() == Private(api_key=KEY, base_url="https://gateway.example/v1")
    assert KEY not in repr(keys.private())
    with database.read() as tx:
        assert KEY not in repr(tx.rows("SELECT * FROM provider_credentials"))


def test_a_key_replaces_the_one_before_whole(keys):
    first = keys.put(api_key=KEY, base_url="https://gateway.example/v1")
    second = keys.put(api_key="sk-other")
    assert (second.created_at, second.base_url) == (first.created_at, None)
    assert second.updated_at > first.updated_at
    assert keys.private() == Private(api_key="sk-other")


def test_a_key_is_used_and_seen_at_home_only(keys, org):
    keys.put(api_key=KEY)
    assert keys.private(org.stranger) is None
    assert keys.listed(org.stranger) == []
    with pytest.raises(NotFoundError):
        keys.delete(by=org.stranger)
    keys.delete()
    assert keys.listed() == []
    with pytest.raises(NotFoundError):
        keys.delete()


def test_a_sealed_key_opens_for_its_organization_only(keys, org, database):
    keys.put(api_key=KEY)
    keys.put(by=org.stranger, api_key="sk-theirs")
    database.write(
        lambda tx: tx.run(
            "UPDATE provider_credentials SET ciphertext = (SELECT p.ciphertext FROM"
            " provider_credentials p WHERE p.organization_id = :ours)",
            ours=org.owner.organization_id,
        )
    )
    assert keys.private() == Private(api_key=KEY)
    with pytest.raises(SealError):
        keys.private(org.stranger)


def test_members_list_keys_and_admins_set_them(keys, org):
    keys.put(by=org.admin, api_key=KEY)
    assert len(keys.listed(org.member)) == 1
    with pytest.raises(ForbiddenError):
        keys.put(by=org.member, api_key=KEY)
    with pytest.raises(ForbiddenError):
        keys.delete(by=org.member)


@pytest.mark.parametrize(
    "members",
    [
        {"api_key": ""},
        {"api_key": "two words"},
        {"api_key": "schlüssel"},
        {"api_key": "x\r\nHost: y"},
        {"api_key": KEY, "base_url": "gateway.example"},
        {"api_key": KEY, "base_url": "file:///etc/passwd"},
        {"api_key": KEY, "base_url": "https://me:secret@gateway.example"},
        {"api_key": KEY, "base_url": "https://gateway.example?key=1"},
        {"api_key": KEY, "base_url": "https://[::1"},
    ],
)
def test_what_cannot_be_a_key_is_not_kept(keys, members):
    with pytest.raises(InvalidInputError) as refused:
        keys.put(**members)
    assert refused.value.code == "invalid_provider_credential"
    assert keys.listed() == []
