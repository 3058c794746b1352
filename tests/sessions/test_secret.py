"""Secrets: taken in, never given back, masked wherever their value may have gone."""

import pytest

from feeds import fork, new_session
from people import make_org
from stenograph.errors import ConflictError, InvalidInputError, NotFoundError
from stenograph.sessions import secret
from stenograph.storage.sealing import Sealer, SealError
from stenograph.trajectories.redaction import MIN_SECRET_LENGTH

VALUE = "correct horse battery staple"


def make(database, caller, sealer, name="TOKEN", value=VALUE):
    return database.write(lambda tx: secret.create(tx, caller, sealer, name, value))


def give(database, caller, sealer, session, *names):
    database.write(lambda tx: secret.give(tx, session, secret.take(tx, caller, sealer, names)))


def values(database, sealer, *sessions):
    with database.read() as tx:
        return set(secret.values_many(tx, sealer, sessions))


def test_a_secret_is_named_and_dated_and_nothing_else_is_told(database, org, sealer):
    made = make(database, org.owner, sealer)
    with database.read() as tx:
        (listed,) = secret.listed(tx, org.admin)
        assert listed == made
        assert secret.listed(tx, org.stranger) == []
        (row,) = tx.rows("SELECT * FROM secrets")
    assert VALUE not in repr(listed)
    assert VALUE.encode() not in b"".join(bytes(c) for c in row if isinstance(c, bytes))
    assert VALUE not in repr(row)


@pytest.mark.parametrize("name", ["", "1A", "A B", "A-B", "Ä", "A" * 129, "A\n", "A.B", "A\0"])
def test_a_name_is_one_that_an_environment_variable_may_have(sqlite_database, sealer, name):
    org = make_org(sqlite_database)
    with pytest.raises(InvalidInputError) as refused:
        make(sqlite_database, org.owner, sealer, name)
    assert refused.value.code == "invalid_secret_name"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("", "secret_too_short"),
        ("abc", "secret_too_short"),
        ("  abc \n", "secret_too_short"),
        ("ä" * 32_769, "secret_too_large"),
    ],
)
def test_a_value_that_could_not_be_masked_is_refused(sqlite_database, sealer, value, code):
    org = make_org(sqlite_database)
    with pytest.raises(InvalidInputError) as refused:
        make(sqlite_database, org.owner, sealer, value=value)
    assert refused.value.code == code
    assert value not in refused.value.message or not value
    with sqlite_database.read() as tx:
        assert secret.listed(tx, org.owner) == []


def test_what_is_taken_is_what_redaction_masks():
    assert secret.MIN_SECRET_LENGTH == MIN_SECRET_LENGTH


def test_a_name_is_taken_once_and_anew_after_deletion(database, org, sealer):
    make(database, org.owner, sealer)
    with pytest.raises(ConflictError) as refused:
        make(database, org.admin, sealer)
    assert refused.value.code == "secret_exists"
    make(database, org.stranger, sealer)  # another organization's names are its own
    database.write(lambda tx: secret.delete(tx, org.owner, "TOKEN"))
    make(database, org.owner, sealer)


@pytest.mark.parametrize("act", ["replace", "delete", "take"])
def test_a_secret_that_is_not_there(database, org, sealer, act):
    make(database, org.stranger, sealer)
    acts = {
        "replace": lambda tx: secret.replace(tx, org.owner, sealer, "TOKEN", VALUE),
        "delete": lambda tx: secret.delete(tx, org.owner, "TOKEN"),
        "take": lambda tx: secret.take(tx, org.owner, sealer, ["TOKEN"]),
    }
    with pytest.raises(NotFoundError) as refused:
        database.write(acts[act])
    assert refused.value.code == "secret_not_found"


def test_a_session_keeps_masking_what_was_replaced_or_deleted(database, org, sealer):
    session = new_session(database, org.owner)
    make(database, org.owner, sealer)
    give(database, org.owner, sealer, session, "TOKEN")
    database.write(lambda tx: secret.replace(tx, org.owner, sealer, "TOKEN", "another value"))
    assert values(database, sealer, session) == {VALUE}
    database.write(lambda tx: secret.delete(tx, org.owner, "TOKEN"))
    assert values(database, sealer, session) == {VALUE}


def test_values_go_where_text_may_have_gone(database, org, sealer):
    """Up to who started a session, down to whom it started, back to what it was forked from."""
    parent, child, grandchild, sibling, other = (new_session(database, org.owner) for _ in "12345")
    started = ((child, parent), (grandchild, child), (sibling, parent))

    def relate(tx):
        for below, above in started:
            tx.run(
                "UPDATE sessions SET parent_conversation_id = :above WHERE conversation_id = :id",
                id=below,
                above=above,
            )
        return fork(tx, org.owner, child, 0)

    forked = database.write(relate)
    names = {"P": parent, "C": child, "G": grandchild, "S": sibling, "F": forked, "O": other}
    for name, session in names.items():
        make(database, org.owner, sealer, name, f"value of {name}")
        give(database, org.owner, sealer, session, name)

    def seen(session):
        return {value[-1] for value in values(database, sealer, session)}

    family = {"P", "C", "G", "S"}
    for session in (parent, child, grandchild, sibling):
        assert seen(session) == family
    assert seen(forked) == family | {"F"}
    assert seen(other) == {"O"}
    assert len(values(database, sealer, forked, other)) == 6


def test_one_query_finds_the_values_and_none_does_for_no_session(database, org, sealer):
    sessions = [new_session(database, org.owner) for _ in range(20)]
    seen = []
    database.observer = seen.append
    with database.read() as tx:
        assert secret.values(tx, sealer, sessions[0]) == ()
        secret.values_many(tx, sealer, sessions)
        secret.values_many(tx, sealer, [])
    database.observer = None
    assert len(seen) == 2


def test_a_key_that_does_not_fit_is_an_error_and_not_an_unmasked_reading(database, org, sealer):
    session = new_session(database, org.owner)
    make(database, org.owner, sealer)
    give(database, org.owner, sealer, session, "TOKEN")
    with database.read() as tx, pytest.raises(SealError):
        secret.values(tx, Sealer(bytes(32)), session)
    with pytest.raises(SealError):
        give(database, org.owner, Sealer(bytes(32)), session, "TOKEN")


def test_a_sealed_value_is_not_another_secrets(database, org, sealer):
    make(database, org.owner, sealer, "ONE")
    make(database, org.owner, sealer, "TWO", "a second value")
    database.write(
        lambda tx: tx.run(
            "UPDATE secrets SET ciphertext = (SELECT ciphertext FROM secrets WHERE name = 'TWO')"
            " WHERE name = 'ONE'"
        )
    )
    with pytest.raises(SealError):
        database.write(lambda tx: secret.take(tx, org.owner, sealer, ["ONE"]))
