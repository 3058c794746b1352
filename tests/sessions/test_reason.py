"""Reasons: whose they are, who reads them, what goes with them."""

import pytest

from stenograph.accounts import principal
from stenograph.conversations import access
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from stenograph.sessions import ending, reason, sending, session
from stenograph.sessions.reason import Profile
from stenograph.sessions.sending import NewMessage

MINE = Profile("Mine", "Be kind.", "anthropic/claude", ("org/repo",))


def make(database, caller, profile=MINE):
    return database.write(lambda tx: reason.create(tx, caller, profile))


def send(database, caller, found, text="hello"):
    return database.write(
        lambda tx: sending.to_reason(tx, caller, found.public_id, NewMessage(text))
    )


def opened(database, caller, found):
    """Open a Reason's conversation and return its session."""
    send(database, caller, found)
    with database.read() as tx:
        known = reason.find(tx, caller, found.public_id)
        return session.find(tx, caller, known.session_public_id)


def share(database, caller, found, *people):
    return database.write(lambda tx: reason.share(tx, caller, found.public_id, people))


def may_read(database, caller, found):
    with database.read() as tx:
        try:
            reason.find(tx, caller, found.public_id)
        except NotFoundError:
            return False
        return True


def test_a_reason_is_what_was_said_of_it(database, org):
    made = make(database, org.owner)
    assert (made.name, made.instructions) == ("Mine", "Be kind.")
    assert made.default_model == "anthropic/claude"
    assert made.repositories == ["org/repo"]
    assert (made.conversation_id, made.session_public_id, made.shared_with) == (None, None, [])
    changed = database.write(
        lambda tx: reason.update(tx, org.owner, made.public_id, Profile("Other", is_main=True))
    )
    assert (changed.name, changed.instructions, changed.is_main) == ("Other", "", True)
    assert changed.public_id == made.public_id


def test_only_its_owner_and_whom_it_is_shared_with_know_of_it(database, org):
    made = make(database, org.member)
    assert may_read(database, org.member, made)
    for caller in (org.owner, org.admin, org.stranger):
        assert not may_read(database, caller, made)
    share(database, org.member, made, "admin")
    assert may_read(database, org.admin, made)
    assert not may_read(database, org.owner, made)
    # The whole list: who is not named again reads no more.
    share(database, org.member, made, org.owner.principal_public_id, "@member")
    assert may_read(database, org.owner, made)
    assert not may_read(database, org.admin, made)
    with database.read() as tx:
        assert reason.find(tx, org.member, made.public_id).shared_with == [
            org.owner.principal_public_id
        ]


def test_lists_hold_what_one_may_read_and_page_by_row(database, org):
    own = [make(database, org.owner, Profile(f"r{n}")) for n in range(3)]
    theirs = make(database, org.member, Profile("theirs"))
    with database.read() as tx:
        assert reason.listed(tx, org.owner, after=0, limit=9) == own
        assert reason.listed(tx, org.owner, after=own[0].id, limit=1) == own[1:2]
        assert reason.listed(tx, org.stranger, after=0, limit=9) == []
    share(database, org.member, theirs, "owner")
    with database.read() as tx:
        assert [r.name for r in reason.listed(tx, org.owner, after=0, limit=9)] == [
            "r0", "r1", "r2", "theirs",
        ]  # fmt: skip


@pytest.mark.parametrize("act", ["update", "share", "send", "delete"])
def test_those_it_is_shared_with_only_read(database, org, act):
    made = make(database, org.owner)
    share(database, org.owner, made, "member")
    acts = {
        "update": lambda tx: reason.update(tx, org.member, made.public_id, MINE),
        "share": lambda tx: reason.share(tx, org.member, made.public_id, []),
        "send": lambda tx: sending.to_reason(tx, org.member, made.public_id, NewMessage("x")),
        "delete": lambda tx: ending.delete_reason(tx, org.member, made.public_id),
    }
    with pytest.raises(ForbiddenError) as refused:
        database.write(acts[act])
    assert refused.value.code == "forbidden"
    with pytest.raises(NotFoundError):
        database.write(lambda tx: ending.delete_reason(tx, org.admin, made.public_id))


def test_a_reason_is_shared_with_people_of_the_organization(database, org):
    made = make(database, org.owner)
    with database.read() as tx:
        stranger = org.stranger.principal_public_id
    for name in ("nobody", stranger, ""):
        with pytest.raises(InvalidInputError) as refused:
            share(database, org.owner, made, "member", name)
        assert refused.value.code == "principal_not_found"
    with database.read() as tx:
        assert reason.find(tx, org.owner, made.public_id).shared_with == []
        member = principal.find(tx, org.owner, "member")
    database.write(
        lambda tx: tx.run("UPDATE principals SET deactivated_at = 1 WHERE id = :i", i=member.id)
    )
    with pytest.raises(InvalidInputError):
        share(database, org.owner, made, "member")


def test_one_main_reason_each(database, org):
    make(database, org.owner, Profile("main", is_main=True))
    second = make(database, org.owner)
    make(database, org.member, Profile("theirs", is_main=True))
    for act in (
        lambda tx: reason.create(tx, org.owner, Profile("x", is_main=True)),
        lambda tx: reason.update(tx, org.owner, second.public_id, Profile("x", is_main=True)),
    ):
        with pytest.raises(ConflictError) as refused:
            database.write(act)
        assert refused.value.code == "main_reason_exists"


def level(database, caller, found):
    """What the Agent API family lets a caller do with the Reason's conversation."""
    with database.read() as tx:
        workspace = tx.value(
            "SELECT w.public_id FROM workspaces w JOIN conversations c ON c.workspace_id = w.id"
            " WHERE c.id = :id",
            id=found.id,
        )
        try:
            return access.find(tx, caller, workspace, found.public_id).level
        except NotFoundError:
            return None


def test_the_other_family_keeps_a_reasons_conversation_as_close(database, org):
    made = make(database, org.owner)
    conversation = opened(database, org.owner, made)
    assert level(database, org.owner, conversation) == "full"
    assert level(database, org.member, conversation) is None
    assert level(database, org.admin, conversation) is None
    share(database, org.owner, made, "member")
    assert level(database, org.member, conversation) == "read"
    share(database, org.owner, made)
    assert level(database, org.member, conversation) is None


def test_a_conversation_that_opens_later_is_shared_too(database, org):
    made = make(database, org.owner)
    share(database, org.owner, made, "member")
    conversation = opened(database, org.owner, made)
    assert level(database, org.member, conversation) == "read"
    with database.read() as tx:
        assert session.find(tx, org.member, conversation.public_id) == conversation
        with pytest.raises(NotFoundError):
            session.find(tx, org.admin, conversation.public_id)


def test_a_deleted_reason_takes_its_sessions_with_it(database, org):
    made = make(database, org.owner)
    conversation = opened(database, org.owner, made)
    database.write(lambda tx: ending.delete_reason(tx, org.owner, made.public_id))
    assert not may_read(database, org.owner, made)
    assert level(database, org.owner, conversation) is None
    with database.read() as tx:
        with pytest.raises(NotFoundError):
            session.find(tx, org.owner, conversation.public_id)
        assert reason.listed(tx, org.owner, after=0, limit=9) == []
        assert tx.value("SELECT status FROM sessions") == "cancelled"
    with pytest.raises(NotFoundError):
        send(database, org.owner, made)
