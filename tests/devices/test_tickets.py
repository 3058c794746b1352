"""Tickets: each counts once, for whom it was made, and tells nobody else anything."""

import pytest

from devices.hands import challenge, enrollment, new_ticket
from stenograph.accounts import access
from stenograph.devices import device, ticket
from stenograph.devices.device import Grant, Permissions
from stenograph.devices.ticket import RootSent
from stenograph.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnauthorizedError,
)


def made(hands, **more):
    new = new_ticket(**more)
    secret, _ = hands.write(lambda tx: ticket.create(tx, hands.owner, new))
    return new, secret


def use(hands, sent):
    return hands.write(lambda tx: ticket.use(tx, sent))


def test_a_worker_becomes_what_its_ticket_says(hands):
    may = Permissions(read=True, discover_environment=True)
    new, secret = made(hands, machine="builders", lifecycle="ephemeral", name="one",
                       roots=[Grant("cd" * 32, may), Grant("ef" * 32, may)])  # fmt: skip
    enrolled = use(hands, enrollment(new, secret, name="what it calls itself"))
    found = enrolled.device
    assert (found.name, found.machine, found.lifecycle) == ("one", "builders", "ephemeral")
    assert [root.grant for root in found.roots] == new.roots
    assert enrolled.organization == hands.owner.organization_public_id
    caller = hands.write(lambda tx: access.resolve(tx, enrolled.secret))
    assert caller.plane == "executor"
    assert caller.principal_id == hands.owner.principal_id
    assert hands.heard(enrolled).public_id == found.public_id


def test_nothing_of_a_ticket_is_stored_that_could_be_used(hands):
    _, secret = made(hands)
    (row,) = hands.rows("SELECT * FROM enrollment_tickets")
    assert secret not in str(row)
    assert secret.encode() not in b"".join(bytes(it) for it in row if isinstance(it, bytes))


def test_a_ticket_counts_once(hands):
    new, secret = made(hands)
    enrolled = use(hands, enrollment(new, secret))
    hands.heard(enrolled)
    with pytest.raises(ConflictError) as refused:
        use(hands, enrollment(new, secret))
    assert refused.value.code == "ticket_used"
    assert hands.heard(enrolled).public_id == enrolled.device.public_id


def test_a_lost_answer_is_made_good_until_the_worker_was_heard_of(hands):
    new, secret = made(hands)
    lost = use(hands, enrollment(new, secret))
    again = use(hands, enrollment(new, secret))
    assert again.device.public_id == lost.device.public_id
    assert again.secret != lost.secret
    with pytest.raises(UnauthorizedError):
        hands.heard(lost)
    hands.heard(again)
    assert len(hands.write(lambda tx: device.listed(tx, hands.owner))) == 1


def test_who_has_a_used_ticket_and_not_its_verifier_learns_nothing(hands):
    new, secret = made(hands)
    enrolled = use(hands, enrollment(new, secret))
    with pytest.raises(ConflictError) as refused:
        use(hands, enrollment(new, secret, code_verifier="w" * 43))
    assert refused.value.code == "ticket_used"
    hands.heard(enrolled)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"code_verifier": "w" * 43}, "verifier_mismatch"),
        ({"code_verifier": challenge("v" * 43)}, "verifier_mismatch"),
        ({"code_verifier": ""}, "verifier_mismatch"),
        ({"install_id": "00000000-0000-4000-8000-000000000000"}, "install_mismatch"),
        ({"roots": []}, "roots_mismatch"),
        ({"roots": [RootSent("00" * 32)]}, "roots_mismatch"),
        ({"roots": [RootSent("ab" * 32), RootSent("ab" * 32)]}, "roots_mismatch"),
    ],
)
def test_what_does_not_agree_is_refused_and_spoils_nothing(hands, wrong, code):
    new, secret = made(hands)
    with pytest.raises(RefusedError) as refused:
        use(hands, enrollment(new, secret, **wrong))
    assert refused.value.code == code
    assert hands.rows("SELECT count(*) FROM devices") == [(0,)]
    assert use(hands, enrollment(new, secret))


def test_a_verifier_is_as_long_as_the_rfc_wants_it(hands):
    """RFC 7636, section 4.1: one of fewer than 43 characters could be guessed."""
    new, secret = made(hands, code_challenge=challenge("short"))
    with pytest.raises(RefusedError, match="verifier"):
        use(hands, enrollment(new, secret, code_verifier="short"))


def test_a_ticket_expires(hands):
    new, secret = made(hands)
    hands.write(lambda tx: tx.run("UPDATE enrollment_tickets SET expires_at = 1"))
    with pytest.raises(RefusedError) as refused:
        use(hands, enrollment(new, secret))
    assert refused.value.code == "ticket_expired"


def test_a_ticket_of_somebody_who_was_sent_away_is_none(hands, org):
    new = new_ticket()
    secret, _ = hands.write(lambda tx: ticket.create(tx, org.member, new))
    gone = "UPDATE principals SET deactivated_at = 1 WHERE id = :id"
    hands.write(lambda tx: tx.run(gone, id=org.member.principal_id))
    with pytest.raises(NotFoundError):
        use(hands, enrollment(new, secret))


def test_no_other_word_is_a_ticket(hands):
    new, secret = made(hands)
    for word in ("", secret[:-1], hands.enroll().secret):
        with pytest.raises(NotFoundError):
            use(hands, enrollment(new, word))


def test_a_folder_is_granted_once(hands):
    with pytest.raises(InvalidInputError) as refused:
        made(hands, roots=[Grant("ab" * 32, Permissions()), Grant("ab" * 32, Permissions())])
    assert refused.value.code == "invalid_roots"


def test_of_many_that_use_a_ticket_at_once_one_device_comes(hands):
    new, secret = made(hands)
    asked = [
        hands.database.submit(lambda tx: ticket.use(tx, enrollment(new, secret))) for _ in range(6)
    ]
    assert len({it.result().device.public_id for it in asked}) == 1
    assert hands.rows("SELECT count(*) FROM devices") == [(1,)]
    good = "SELECT count(*) FROM credentials WHERE revoked_at IS NULL AND name LIKE 'worker-%'"
    assert hands.rows(good) == [(1,)]
