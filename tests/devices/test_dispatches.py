"""Calls in the hands of workers: taken once, in order, kept by leases, given up when they end."""

import pytest

from devices.hands import ALL
from stenograph.devices import device
from stenograph.devices.device import Grant
from stenograph.devices.dispatch import MOST_CLAIMS, Wish
from stenograph.devices.target import Target
from stenograph.engine import start
from stenograph.engine.toolboxes import leases
from stenograph.engine.toolboxes.leases import GONE, LOST
from stenograph.errors import ConflictError
from stenograph.events import feed
from stenograph.retention.integrity import check
from stenograph.sessions import secret


def stale(act, *arguments):
    with pytest.raises(ConflictError) as refused:
        act(*arguments)
    return refused.value.code == "stale_claim"


def target_of(machine):
    return Target(None, None, machine, None)


def test_a_call_goes_to_the_worker_of_its_session_with_all_it_needs(hands):
    worker = hands.worker()
    hands.worker()
    session = hands.session(hands.on(worker))
    hands.call(session, "bash", command="ls")
    taken = hands.claimed(worker)
    assert (taken.dispatch.name, taken.arguments) == ("bash", {"command": "ls"})
    assert taken.dispatch.session == hands.public(session)
    assert (taken.root, taken.workspace_path) == (worker.roots[0].public_id, None)
    assert taken.environment == {}
    assert taken.timeout_ms is None
    assert not taken.resumed
    assert hands.claim(worker) is None


def test_calls_are_taken_in_the_order_in_which_they_were_made(hands):
    worker = hands.worker()
    first, second = hands.session(hands.on(worker)), hands.session(hands.on(worker))
    keys = [*hands.call(first, "read", "bash"), *hands.call(second, "glob")]
    taken = [hands.claimed(worker) for _ in keys]
    assert [it.dispatch.name for it in taken] == ["read", "bash", "glob"]


def test_a_call_that_is_offered_again_is_the_same(hands):
    """A server that is started again makes every step twice."""
    worker = hands.worker()
    session = hands.session(hands.on(worker))
    (key,) = hands.call(session, "bash")
    offer = lambda tx: leases.offer(tx, hands.candidate(tx, session), key)  # noqa: E731
    assert hands.write(offer)
    taken = hands.claimed(worker)
    assert hands.write(offer)
    assert hands.dispatches() == ["claimed"]
    assert hands.tasks()["bash"][0] == "running"
    hands.settle(worker, taken.claim_id)
    assert not hands.write(offer)
    assert hands.dispatches() == ["completed"]


def test_of_workers_that_ask_at_once_each_call_goes_to_one(hands):
    workers = [hands.worker(machine="m") for _ in range(3)]
    for _ in range(4):
        hands.call(hands.session(target_of("m")), "bash", "read")
    asked = [
        hands.database.submit(lambda tx, one=one: leases.claim(tx, hands.sealer, one, Wish()))
        for one in workers * 4
    ]
    taken = [it.result() for it in asked]
    got = [it.dispatch.id for it in taken if it is not None]
    assert len(got) == len(set(got)) == 8
    owners = hands.rows(
        "SELECT conversation_id, count(DISTINCT device_id) FROM dispatches GROUP BY conversation_id"
    )
    assert {count for _, count in owners} == {1}


def test_a_settlement_is_written_once_and_may_be_sent_again(hands):
    worker = hands.worker()
    session = hands.session(hands.on(worker))
    hands.call(session, "bash")
    claim_id = hands.claimed(worker).claim_id
    for _ in range(2):
        settled = hands.settle(worker, claim_id, "a\x00b")
        assert (settled.status, settled.canceled) == ("completed", False)
    assert stale(hands.settle, worker, claim_id, "another")
    assert stale(hands.settle, worker, claim_id, "a\x00b", "failed")
    assert stale(hands.extend, worker, claim_id)
    assert hands.tasks() == {"bash": ("completed", "a\ufffdb")}
    assert hands.dispatches() == ["completed"]
    assert check(hands.database) == []


@pytest.mark.parametrize("status", ["failed", "timed_out", "uncertain"])
def test_a_call_may_end_otherwise(hands, status):
    worker = hands.worker()
    hands.call(hands.session(hands.on(worker)), "bash")
    hands.settle(worker, hands.claimed(worker).claim_id, "it was so", status)
    assert hands.tasks() == {"bash": (status, "it was so")}


def test_the_record_tells_that_a_call_waits_and_that_a_worker_has_it(hands):
    worker = hands.worker()
    session = hands.session(hands.on(worker))
    (key,) = hands.call(session, "bash")
    hands.settle(worker, hands.claimed(worker).claim_id)
    with hands.database.read() as tx:
        events = feed.page(tx, session, 0, 100)
    told = [it.payload["status"] for it in events if it.task_key == key]
    assert told == ["waiting", "running", "dispatched", "running", "completed"]


def test_a_claim_tells_nothing_to_another_worker(hands, org):
    worker, other = hands.worker(), hands.worker()
    stranger = hands.worker(caller=org.stranger)
    hands.call(hands.session(hands.on(worker)), "bash")
    claim_id = hands.claimed(worker).claim_id
    for one in (other, stranger):
        assert hands.claim(one) is None
        assert stale(hands.extend, one, claim_id)
        assert stale(hands.settle, one, claim_id)
    assert stale(hands.extend, worker, "none")
    assert hands.extend(worker, claim_id).canceled is False


# Leases


def test_a_lease_that_is_extended_is_kept(hands):
    worker = hands.worker()
    hands.call(hands.session(hands.on(worker)), "bash")
    claim_id = hands.claimed(worker).claim_id
    hands.lose_leases()
    assert hands.extend(worker, claim_id).expires_at > 1
    hands.expire()
    assert hands.dispatches() == ["claimed"]
    assert hands.settle(worker, claim_id).status == "completed"


def test_what_may_be_repeated_is_given_out_again_and_the_former_claim_is_stale(hands):
    worker = hands.worker()
    hands.call(hands.session(hands.on(worker)), "read")
    first = hands.claimed(worker)
    hands.lose_leases()
    hands.expire()
    assert hands.tasks()["read"][0] == "dispatched"
    assert stale(hands.extend, worker, first.claim_id)
    assert stale(hands.settle, worker, first.claim_id)
    second = hands.claimed(worker)
    assert second.resumed
    assert second.claim_id != first.claim_id
    assert hands.settle(worker, second.claim_id, "the file").status == "completed"
    assert hands.tasks() == {"read": ("completed", "the file")}


def test_what_is_lost_too_often_is_given_up(hands):
    worker = hands.worker()
    hands.call(hands.session(hands.on(worker)), "read")
    for _ in range(MOST_CLAIMS):
        last = hands.claimed(worker)
        hands.lose_leases()
        hands.expire()
    assert hands.claim(worker) is None
    assert hands.tasks() == {"read": ("uncertain", LOST)}
    assert stale(hands.settle, worker, last.claim_id)


@pytest.mark.parametrize("name", ["bash", "edit", "some_other_tool"])
def test_nobody_knows_what_a_lost_worker_did(hands, name):
    worker = hands.worker()
    hands.call(hands.session(hands.on(worker)), name)
    claim_id = hands.claimed(worker).claim_id
    hands.lose_leases()
    hands.expire()
    assert hands.tasks() == {name: ("uncertain", LOST)}
    assert hands.dispatches() == ["uncertain"]
    assert stale(hands.settle, worker, claim_id)
    assert stale(hands.extend, worker, claim_id)
    assert check(hands.database) == []


def test_a_worker_that_waits_is_given_no_lost_call_before_it_is_counted_as_lost(hands):
    """A claim looks for leases that are over, too, so that nothing depends on the sweep."""
    worker = hands.worker()
    hands.call(hands.session(hands.on(worker)), "read")
    hands.claimed(worker)
    assert hands.claim(worker) is None


# Turns that end


def test_a_cancelled_turn_is_told_with_the_lease_and_its_output_is_dropped(hands):
    worker = hands.worker()
    session = hands.session(hands.on(worker))
    hands.call(session, "bash", "read")
    taken = hands.claimed(worker)
    hands.write(lambda tx: start.cancel_session(tx, hands.owner, hands.public(session)))
    assert hands.claim(worker) is None
    assert hands.extend(worker, taken.claim_id).canceled
    for _ in range(2):
        settled = hands.settle(worker, taken.claim_id, "too late")
        assert (settled.status, settled.canceled) == ("canceled", True)
    assert stale(hands.settle, worker, taken.claim_id, "another")
    assert hands.tasks() == {"bash": ("canceled", None), "read": ("canceled", None)}
    hands.expire()
    assert hands.dispatches() == ["canceled", "canceled"]


def test_a_worker_that_comes_back_late_hears_that_the_turn_was_cancelled(hands):
    worker = hands.worker()
    session = hands.session(hands.on(worker))
    hands.call(session, "bash")
    claim_id = hands.claimed(worker).claim_id
    hands.write(lambda tx: start.cancel_session(tx, hands.owner, hands.public(session)))
    hands.lose_leases()
    hands.expire()
    assert hands.extend(worker, claim_id).canceled
    assert hands.settle(worker, claim_id).canceled


# Devices that go


def test_a_device_that_is_removed_gives_up_at_once_what_it_had(hands):
    worker = hands.worker()
    session = hands.session(hands.on(worker))
    hands.call(session, "bash", "read", "glob")
    for _ in range(2):
        hands.claimed(worker)
    hands.write(lambda tx: device.remove(tx, hands.owner, worker.public_id))
    hands.expire()
    found = hands.tasks()
    assert found["bash"] == ("uncertain", LOST)
    assert {found[name][0] for name in ("read", "glob")} == {"failed"}
    assert found["glob"][1].startswith("The worker that had this session's files is gone")
    assert hands.claim(worker) is None
    hands.call(session, "grep")
    hands.expire()
    assert hands.tasks()["grep"][0] == "failed"


def test_a_persistent_device_is_waited_for(hands):
    worker = hands.worker()
    hands.call(hands.session(hands.on(worker)), "bash")
    hands.unseen(worker, 3600)
    hands.expire()
    assert hands.dispatches() == ["queued"]
    assert hands.claim(worker)


def test_an_ephemeral_device_that_stays_away_is_removed(hands):
    worker = hands.worker(lifecycle="ephemeral")
    hands.call(hands.session(hands.on(worker)), "bash")
    hands.unseen(worker, 500)
    hands.expire()
    assert hands.dispatches() == ["queued"]
    hands.unseen(worker, 700)
    hands.expire()
    assert hands.tasks()["bash"][0] == "failed"
    with hands.database.read() as tx:
        assert device.listed(tx, hands.owner) == []


# Machines


def bound(hands):
    return hands.rows("SELECT device_id FROM session_targets ORDER BY conversation_id")


def test_the_first_call_binds_a_session_to_a_worker_and_its_next_ones_go_there(hands):
    one, other = hands.worker(machine="m"), hands.worker(machine="m")
    elsewhere = hands.worker(machine="n")
    session = hands.session(target_of("m"))
    hands.call(session, "read", "bash")
    assert hands.claim(elsewhere) is None
    assert hands.claimed(one).root == one.roots[0].public_id
    assert hands.claim(other) is None
    assert hands.claim(one, hands.public(session), free=0)
    hands.call(session, "glob")
    assert hands.claim(other) is None
    assert hands.claim(one, hands.public(session), free=0)


def test_a_worker_takes_no_more_sessions_than_it_has_room_for(hands):
    worker = hands.worker(machine="m")
    first, second = hands.session(target_of("m")), hands.session(target_of("m"))
    hands.call(first, "bash")
    hands.call(second, "read")
    assert hands.claim(worker, free=0) is None
    assert hands.claimed(worker, free=1).dispatch.name == "bash"
    hands.call(first, "glob")
    assert hands.claimed(worker, hands.public(first), free=0).dispatch.name == "glob"
    assert hands.claim(worker, hands.public(first), free=0) is None
    assert hands.claimed(worker, hands.public(first), free=1).dispatch.name == "read"


def test_a_subagent_works_where_its_parent_does_and_takes_no_room_of_its_own(hands):
    """Its parent waits for it: a worker without room would keep both waiting for ever."""
    one, other = hands.worker(machine="m"), hands.worker(machine="m")
    parent = hands.session(target_of("m"))
    child = hands.session(None, parent)
    hands.call(parent, "read")
    assert hands.claim(one)
    hands.call(child, "bash")
    assert hands.claim(other) is None
    assert hands.claimed(one, hands.public(parent), free=0).dispatch.name == "bash"


def test_a_subagent_that_calls_first_binds_its_parent(hands):
    one, other = hands.worker(machine="m"), hands.worker(machine="m")
    parent = hands.session(target_of("m"))
    child = hands.session(None, parent)
    hands.call(parent, "read")
    hands.call(child, "bash")
    hands.write(lambda tx: tx.run("UPDATE dispatches SET id = -id WHERE conversation_id = :id",
                                  id=child))  # fmt: skip
    assert hands.claimed(one).dispatch.name == "bash"
    assert hands.claim(other) is None
    assert hands.claimed(one).dispatch.name == "read"


def test_a_session_without_work_lets_its_worker_go(hands):
    one, other = hands.worker(machine="m"), hands.worker(machine="m")
    session = hands.session(target_of("m"))
    hands.call(session, "read")
    hands.settle(one, hands.claimed(one).claim_id)
    hands.expire()
    assert bound(hands) == [(one.id,)]
    hands.write(lambda tx: start.cancel_session(tx, hands.owner, hands.public(session)))
    hands.expire()
    assert bound(hands) == [(None,)]
    assert other.id != one.id


def test_a_lost_worker_that_had_done_nothing_is_replaced(hands):
    one, other = hands.worker(machine="m"), hands.worker(machine="m")
    session = hands.session(target_of("m"))
    hands.call(session, "read", "bash")
    hands.claimed(one)
    hands.unseen(one, 59)
    hands.lose_leases()
    hands.expire()
    assert hands.claim(other) is None
    hands.unseen(one, 61)
    hands.expire()
    taken = [hands.claimed(other), hands.claimed(other)]
    assert [it.dispatch.name for it in taken] == ["read", "bash"]
    assert taken[0].resumed
    assert bound(hands) == [(other.id,)]


def test_an_agent_is_told_that_its_files_are_gone_and_goes_on_elsewhere(hands):
    one, other = hands.worker(machine="m"), hands.worker(machine="m")
    session = hands.session(target_of("m"))
    hands.call(session, "write")
    hands.settle(one, hands.claimed(one).claim_id)
    hands.unseen(one, 61)
    hands.expire()
    assert bound(hands) == [(one.id,)]  # nobody was told yet
    hands.call(session, "read", "glob")
    hands.expire()
    found = hands.tasks()
    for name in ("read", "glob"):
        assert found[name][0] == "failed"
        assert found[name][1].startswith(GONE)
    hands.call(session, "bash")
    assert hands.claimed(other).dispatch.name == "bash"
    assert bound(hands) == [(other.id,)]
    assert check(hands.database) == []


# What else a worker is given


def test_a_session_s_secrets_are_given_by_name_and_masked_in_its_readings(hands):
    worker = hands.worker()
    for name, value in (("TOKEN", "hunter2-hunter2"), ("OTHER", "not-of-the-session")):
        hands.write(lambda tx, n=name, v=value: secret.create(tx, hands.owner, hands.sealer, n, v))
    given = hands.write(lambda tx: secret.take(tx, hands.owner, hands.sealer, ["TOKEN"]))
    session = hands.session(hands.on(worker), secrets=given)
    hands.write(
        lambda tx: secret.replace(tx, hands.owner, hands.sealer, "TOKEN", "hunter3-hunter3")
    )
    newer = hands.write(lambda tx: secret.take(tx, hands.owner, hands.sealer, ["TOKEN"]))
    hands.write(lambda tx: secret.give(tx, session, newer))
    hands.call(session, "bash")
    assert hands.claimed(worker).environment == {"TOKEN": "hunter3-hunter3"}
    with hands.database.read() as tx:
        masked = secret.values(tx, hands.sealer, session)
    assert set(masked) == {"hunter2-hunter2", "hunter3-hunter3"}


def test_a_worker_is_told_how_much_time_is_left(hands):
    worker = hands.worker()
    budget = {"execution_budget": {"wall_clock_max_ms": 60_000}}
    hands.call(hands.session(hands.on(worker), options=budget), "bash")
    left = hands.claimed(worker).timeout_ms
    assert left is not None
    assert 0 < left <= 60_000


def test_a_worker_of_another_protocol_is_given_nothing(hands):
    enrolled = hands.enroll(version="2.0", roots=[Grant("ab" * 32, ALL)])
    assert not enrolled.device.compatible
    with pytest.raises(ConflictError) as refused:
        hands.heard(enrolled)
    assert refused.value.code == "not_eligible"
    assert hands.enroll(version="1.7").device.compatible
