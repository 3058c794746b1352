"""Keys: what is stored of them, who may make which, and when they stop to count."""

import re

import pytest

from stenograph.accounts import access, credential, principal, scopes
from stenograph.clock import DAY, now
from stenograph.errors import ForbiddenError, InvalidInputError, NotFoundError, UnauthorizedError

# The 29 scopes of the founding document, in its order.
DOCUMENTED = [
    "run", "mcp:read", "mcp:write", "secrets:read", "secrets:write", "sessions:read",
    "sessions:debug", "knowledge:read", "memory:read", "memory:write", "skills:read",
    "skills:write", "repos:read", "repos:write", "reviews:read", "reviews:write", "deployment:read",
    "analytics:read", "org:read", "org:write", "attachments:read", "attachments:write",
    "guardrails:read", "guardrails:write", "network:read", "network:write", "automations:read",
    "automations:write", "agent_auth:read",
]  # fmt: skip


def make(database, caller, plane="api", **options):
    return database.write(lambda tx: credential.create(tx, caller, plane, **options))


def resolve(database, secret):
    with database.read() as tx:
        return access.resolve(tx, secret)


def test_the_scopes_are_the_documented_ones_and_those_of_devices():
    assert [*DOCUMENTED, "devices:read", "devices:write", "devices:use"] == list(scopes.SCOPES)


@pytest.mark.parametrize(
    ("plane", "form"),
    [
        ("api", r"reason_[A-Za-z0-9]{43}"),
        ("member", r"sk-steno-v1-[A-Za-z0-9]{43}"),
        ("executor", r"sk-steno-v1-[A-Za-z0-9]{43}"),
    ],
)
def test_a_secret_says_its_family_and_resolves_to_its_holder(database, org, plane, form):
    made, secret = make(database, org.owner, plane, holder="member", name="laptop")
    assert re.fullmatch(form, secret)
    found = resolve(database, secret)
    assert found.plane == plane
    assert found.principal_public_id == org.member.principal_public_id
    assert found.organization_slug == "default"
    assert found.credential_public_id == made.public_id


def test_no_secret_is_stored(database, org):
    _, secret = make(database, org.owner)
    with database.read() as tx:
        rows = tx.rows("SELECT * FROM credentials")
    stored = [bytes(v) if isinstance(v, memoryview) else v for row in rows for v in row]
    tail = secret.removeprefix("reason_")
    assert not any(
        tail in v if isinstance(v, str) else tail.encode() in v
        for v in stored
        if isinstance(v, str | bytes)
    )


def test_the_default_key_leaves_out_what_is_opt_in(org):
    assert org.owner.scopes == set(scopes.SCOPES) - {"network:read", "network:write"}
    assert org.member.scopes == org.owner.scopes - {"sessions:debug"}


def test_no_key_grants_more_than_its_maker_has(database, org):
    narrow, secret = make(database, org.owner, wanted=["run", "sessions:read"])
    maker = resolve(database, secret)
    assert narrow.scopes == ("run", "sessions:read")
    with pytest.raises(ForbiddenError) as refused:
        make(database, maker, wanted=["sessions:read", "secrets:read"])
    assert refused.value.details == {"required_scope": "secrets:read"}
    inherited, _ = make(database, maker)
    assert inherited.scopes == ("run", "sessions:read")


def test_owners_and_admins_alone_may_hold_what_is_privileged(database, org):
    with database.read() as tx:
        local = access.local(tx)
    granted, _ = make(database, local, holder="admin", wanted=["network:write", "sessions:debug"])
    assert set(granted.scopes) == {"network:write", "sessions:debug"}
    for scope in ("network:write", "sessions:debug"):
        with pytest.raises(ForbiddenError):
            make(database, local, holder="member", wanted=[scope])
        with pytest.raises(ForbiddenError):
            make(database, org.member, wanted=[scope])


def test_a_demoted_admin_loses_what_is_privileged_at_once(database, org):
    assert "sessions:debug" in resolve(database, org.keys["api:admin"]).scopes
    database.write(
        lambda tx: tx.run(
            "UPDATE principals SET role = 'member' WHERE id = :id", id=org.admin.principal_id
        )
    )
    assert "sessions:debug" not in resolve(database, org.keys["api:admin"]).scopes


def test_members_make_keys_for_themselves_only_and_admins_none_for_owners(database, org):
    own, _ = make(database, org.member)
    assert own.holder_public_id == org.member.principal_public_id
    with pytest.raises(ForbiddenError):
        make(database, org.member, holder="admin")
    with pytest.raises(ForbiddenError):
        make(database, org.admin, holder="owner")


def test_nothing_of_another_organization_is_found(database, org):
    with pytest.raises(NotFoundError):
        make(database, org.stranger, holder="admin")
    made, _ = make(database, org.owner)
    with pytest.raises(NotFoundError):
        database.write(lambda tx: credential.revoke(tx, org.stranger, made.public_id))


def test_a_revoked_key_is_refused_at_once_and_stays_so(database, org):
    made, secret = make(database, org.owner)
    for _ in range(2):
        database.write(lambda tx: credential.revoke(tx, org.owner, made.public_id))
        with pytest.raises(UnauthorizedError, match="revoked"):
            resolve(database, secret)


def test_a_key_expires(database, org):
    made, secret = make(database, org.owner, expires_days=1)
    assert made.expires_at is not None
    assert now() < made.expires_at <= now() + DAY
    resolve(database, secret)
    database.write(lambda tx: tx.run("UPDATE credentials SET expires_at = :now", now=now()))
    with pytest.raises(UnauthorizedError, match="expired"):
        resolve(database, secret)


@pytest.mark.parametrize(
    "withdrawal",
    [
        "UPDATE principals SET deactivated_at = 1 WHERE handle = 'admin'",
        "UPDATE organizations SET retired_at = 1 WHERE slug = 'default'",
    ],
)
def test_keys_end_with_their_holder_and_their_organization(database, org, withdrawal):
    resolve(database, org.keys["api:admin"])
    database.write(lambda tx: tx.run(withdrawal))
    with pytest.raises(UnauthorizedError):
        resolve(database, org.keys["api:admin"])
    resolve(database, org.keys["api:stranger"])


@pytest.mark.parametrize("secret", ["", "reason_", "reason_unknown", "\ud800", "x" * 100_000])
def test_what_is_no_key_is_refused(database, org, secret):
    with pytest.raises(UnauthorizedError):
        resolve(database, secret)


def test_a_legacy_key_is_a_key(database, org):
    # Keys that began `ara_` remain accepted: it is the digest that counts.
    from stenograph.accounts import store

    database.write(
        lambda tx: tx.run(
            "UPDATE credentials SET digest = :digest WHERE public_id = :id",
            digest=store.digest("ara_0123456789abcdefghij"),
            id=org.owner.credential_public_id,
        )
    )
    found = resolve(database, "ara_0123456789abcdefghij")
    assert found.principal_id == org.owner.principal_id


@pytest.mark.parametrize(
    "options",
    [{"wanted": ["sessions:rule"]}, {"expires_days": 0}, {"expires_days": 10**9}],
)
def test_bad_wishes_make_no_key(database, org, options):
    with database.read() as tx:
        before = tx.value("SELECT count(*) FROM credentials")
    with pytest.raises(InvalidInputError):
        make(database, org.owner, **options)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM credentials") == before


def test_a_list_shows_admins_all_keys_and_others_their_own(database, org):
    with database.read() as tx:
        everyones = credential.listed(tx, org.admin)
        own = credential.listed(tx, org.member)
    assert {c.holder_handle for c in everyones} == {"owner", "agent", "admin", "member"}
    assert {c.holder_handle for c in own} == {"member"}


def test_people_are_found_by_handle_or_id_within_their_organization(database, org):
    with database.read() as tx:
        found = principal.find(tx, org.owner, "@member")
        assert found == principal.find(tx, org.owner, org.member.principal_public_id)
        with pytest.raises(NotFoundError):
            principal.find(tx, org.stranger, org.member.principal_public_id)


@pytest.mark.parametrize("handle", ["", "With Space", "a" * 40, "-x", "é"])
def test_a_handle_is_short_and_plain(database, org, handle):
    with pytest.raises(InvalidInputError):
        database.write(lambda tx: principal.add(tx, org.owner, handle))


def test_only_an_admin_adds_people_and_only_an_owner_owners(database, org):
    with pytest.raises(ForbiddenError):
        database.write(lambda tx: principal.add(tx, org.member, "friend"))
    with pytest.raises(ForbiddenError):
        database.write(lambda tx: principal.add(tx, org.admin, "friend", role="owner"))
    added = database.write(lambda tx: principal.add(tx, org.admin, "friend"))
    assert (added.handle, added.kind, added.role) == ("friend", "human", "member")
