"""Where a session may work, and who decides."""

from dataclasses import replace

import pytest

from devices.hands import ALL
from stenograph.devices import device, machine, target
from stenograph.devices.device import Grant, Permissions
from stenograph.devices.target import Target
from stenograph.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError


def choose(hands, sent, caller=None):
    with hands.database.read() as tx:
        return target.choose(tx, caller or hands.owner, sent)


def headless(worker, **more):
    about = {
        "kind": "headless",
        "device_id": worker.public_id,
        "root_id": worker.roots[0].public_id,
        "workspace_mode": "project_root",
    }
    return about | more


def test_a_root_of_a_device(hands):
    may = Permissions(read=True)
    worker = hands.worker(roots=[Grant("ab" * 32, ALL), Grant("cd" * 32, may)])
    root = worker.roots[1]
    sent = headless(worker, root_id=root.public_id, workspace_path="a/b")
    assert choose(hands, sent) == Target(worker.id, root.id, None, "a/b", may)
    assert choose(hands, None) is None


def test_a_device_that_is_not_there(hands, org):
    worker = hands.worker(caller=org.stranger)
    with pytest.raises(NotFoundError) as refused:
        choose(hands, headless(worker))
    assert refused.value.code == "device_not_found"


def test_a_device_that_cannot_be_had(hands):
    worker, other = hands.worker(), hands.worker()
    codes = []
    for sent in (headless(worker, root_id=other.roots[0].public_id), headless(worker, root_id="")):
        with pytest.raises(ConflictError) as refused:
            choose(hands, sent)
        codes.append(refused.value.code)
    hands.unseen(worker, 31)
    old = hands.enroll(version="0.9").device
    for sent in (headless(worker), headless(old)):
        with pytest.raises(ConflictError) as refused:
            choose(hands, sent)
        codes.append(refused.value.code)
    assert set(codes) == {"session_target_unavailable"}
    hands.write(lambda tx: device.remove(tx, hands.owner, worker.public_id))
    with pytest.raises(NotFoundError):
        choose(hands, headless(worker))


def test_a_device_is_used_by_who_may_use_devices(hands):
    worker = hands.worker()
    bare = replace(hands.owner, scopes=frozenset({"run"}))
    with pytest.raises(ForbiddenError) as refused:
        choose(hands, headless(worker), bare)
    assert refused.value.details == {"required_scope": "devices:use"}


def test_a_machine_that_a_worker_served_once_is_waited_for(hands, org):
    with pytest.raises(ConflictError) as refused:
        choose(hands, {"kind": "machine", "name": "m"})
    assert refused.value.code == "headless_workers_unavailable"
    hands.worker(machine="m", caller=org.stranger)
    with pytest.raises(ConflictError):
        choose(hands, {"kind": "machine", "name": "m"})
    worker = hands.worker(machine="m")
    hands.write(lambda tx: device.remove(tx, hands.owner, worker.public_id))
    assert choose(hands, {"kind": "machine", "name": "m"}) == Target(None, None, "m", None)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"kind": "cloud"},
        {"kind": "machine"},
        {"kind": "machine", "name": "Not A Queue"},
        {"kind": "headless", "device_id": "x"},
        {"kind": "headless", "device_id": 1, "root_id": 2},
        {"kind": "headless", "device_id": "x", "root_id": "y", "workspace_mode": "clone"},
        {"kind": "headless", "device_id": "x", "root_id": "y", "workspace_path": ""},
        {"kind": "headless", "device_id": "x", "root_id": "y", "workspace_path": "a/../../b"},
        {"kind": "headless", "device_id": "x", "root_id": "y", "workspace_path": "a\0b"},
    ],
)
def test_anything_else_is_none(hands, sent):
    with pytest.raises(InvalidInputError) as refused:
        choose(hands, sent)
    assert refused.value.code == "invalid_target"


def test_a_subagent_of_a_session_that_works_nowhere_works_nowhere(hands):
    parent = hands.session(None)
    child = hands.session(None, parent)
    with hands.database.read() as tx:
        assert target.of(tx, child) is None


def test_what_a_device_is_seen_by_and_removed_by(hands, org):
    worker = hands.worker(caller=org.member)
    for caller in (org.owner, org.admin, org.member):
        with hands.database.read() as tx:
            assert device.find(tx, caller, worker.public_id).id == worker.id
    mine = hands.worker(caller=org.admin)
    with pytest.raises(ForbiddenError):
        hands.write(lambda tx: device.remove(tx, org.member, mine.public_id))
    with pytest.raises(NotFoundError):
        hands.write(lambda tx: device.remove(tx, org.stranger, mine.public_id))
    hands.write(lambda tx: device.remove(tx, org.member, worker.public_id))
    hands.write(lambda tx: device.remove(tx, org.owner, mine.public_id))


def test_a_machine_is_told_with_its_workers_and_who_waits(hands, org):
    busy, free, away = (hands.worker(machine="m") for _ in range(3))
    hands.worker(machine="elsewhere", caller=org.stranger)
    hands.worker()
    hands.call(hands.session(Target(None, None, "m", None)), "read")
    hands.claimed(busy)
    hands.unseen(away, 31)
    for _ in range(2):
        hands.call(hands.session(Target(None, None, "m", None)), "read", "bash")
    with hands.database.read() as tx:
        (found,) = machine.listed(tx, hands.owner)
    assert (found.name, found.online, found.busy, found.waiting) == ("m", 2, 1, 2)
    assert free.online


def test_lists_cost_the_same_however_long_they_are(hands):
    """A constant number of queries."""

    def asked():
        seen = []
        hands.database.observer = seen.append
        with hands.database.read() as tx:
            device.listed(tx, hands.owner)
            machine.listed(tx, hands.owner)
        hands.database.observer = None
        return len(seen)

    hands.worker(machine="a")
    few = asked()
    for name in "bcde":
        hands.worker(machine=name)
    assert asked() == few
