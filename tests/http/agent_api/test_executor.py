"""What workers ask over HTTP: to enroll, for calls, for more time, to have results kept."""

import asyncio

import msgspec
import pytest

from devices.hands import Hands, enrollment, new_ticket
from http_routes import every_row
from serving import Api
from stenograph.devices import ticket
from stenograph.devices.dispatch import LEASE
from stenograph.devices.target import Target
from stenograph.engine import start
from stenograph.engine.toolboxes import progress
from stenograph.events import live, waiting
from stenograph.sessions import secret
from stenograph.settings import Settings

ENROLLMENTS = "/agent_api/v1/executor/enrollments"
CLAIMS = "/agent_api/v1/executor/claims"
MACHINE = Target(None, None, "m", None)


@pytest.fixture
def hands(database, org, sealer):
    return Hands(database, org.owner, sealer)


@pytest.fixture
def worker(hands):
    """A worker and its secret."""
    enrolled = hands.enroll(machine="m")
    return hands.heard(enrolled), enrolled.secret


def code(answer):
    return answer.status_code, answer.json()["error"]["code"]


def claim(api, key, **more):
    answer = api.post(CLAIMS, key=key, json={"claim": more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def settled(api, key, claim_id, output="done", status="completed", **more):
    body = {"settlement": {"status": status, "output": output} | more}
    return api.post(f"{CLAIMS}/{claim_id}/settlement", key=key, json=body)


# Enrollment


def test_a_worker_enrolls_without_a_credential(api, hands):
    new = new_ticket(machine="m", lifecycle="ephemeral")
    word, _ = hands.write(lambda tx: ticket.create(tx, hands.owner, new))
    body = {"enrollment": msgspec.to_builtins(enrollment(new, word, name="one"))}
    made = api.post(ENROLLMENTS, key="", json=body)
    assert made.status_code == 201
    told = made.json()["device"]
    (root,) = told.pop("roots")
    assert told.pop("id")
    assert told == {
        "organization_id": hands.owner.organization_public_id,
        "name": "one",
        "lifecycle": "ephemeral",
        "machine": "m",
    }
    assert root.keys() == {"id", "path_fingerprint", "permissions", "execution_mode"}
    key = made.json()["secret"]
    assert key.startswith("sk-steno-v1-")
    assert claim(api, key) == {"claim": None, "released": []}
    assert code(api.post(ENROLLMENTS, key="", json=body)) == (409, "ticket_used")
    for path in ("/agent_api/v1/workspaces", f"{api.v3}/devices"):
        assert api.get(path, key=key).status_code == 401


def test_what_an_enrollment_is_refused_with(api, hands):
    new = new_ticket()
    word, _ = hands.write(lambda tx: ticket.create(tx, hands.owner, new))
    body = msgspec.to_builtins(enrollment(new, word))

    def refusal(**wrong):
        return code(api.post(ENROLLMENTS, key="", json={"enrollment": body | wrong}))

    assert refusal(ticket="none") == (404, "not_found")
    assert refusal(code_verifier="w" * 50) == (422, "verifier_mismatch")
    assert refusal(install_id="00000000-0000-4000-8000-000000000000") == (422, "install_mismatch")
    assert refusal(roots=[]) == (422, "roots_mismatch")
    assert refusal(install_id="x") == (400, "parameter_invalid")
    hands.write(lambda tx: tx.run("UPDATE enrollment_tickets SET expires_at = 1"))
    assert refusal() == (422, "ticket_expired")


def test_guessing_tickets_is_slow(database, org, settings, sealer):
    opened = Api(database, org, Settings(data=settings.data), sealer)
    body = {"enrollment": msgspec.to_builtins(enrollment(new_ticket(), "guessed"))}
    answers = [opened.post(ENROLLMENTS, key="", json=body).status_code for _ in range(61)]
    assert answers.count(404) + answers.count(429) == 61
    assert answers.count(404) <= 2 * 60  # two windows, if a minute ends meanwhile
    opened.close()


# Claims


def test_a_call_over_the_wire(api, hands, worker):
    device, key = worker
    made = hands.write(
        lambda tx: secret.create(tx, hands.owner, hands.sealer, "TOKEN", "hunter2-hunter2")
    )
    given = hands.write(lambda tx: secret.take(tx, hands.owner, hands.sealer, [made.name]))
    session = hands.session(MACHINE, secrets=given)
    hands.call(session, "bash", command="env")
    found = claim(api, key)["claim"]
    claim_id, run = found.pop("claim_id"), found.pop("run_public_id")
    assert [(run,)] == hands.rows("SELECT public_id FROM runs")
    assert found == {
        "lease_seconds": LEASE // 1_000_000,
        "task_key": "r2t0",
        "session_id": hands.public(session),
        "root_id": device.roots[0].public_id,
        "workspace_path": None,
        "tool": {"name": "bash", "arguments": {"command": "env"}},
        "environment": {"TOKEN": "hunter2-hunter2"},
        "timeout_ms": None,
        "resumed": False,
    }
    lease = api.post(f"{CLAIMS}/{claim_id}/lease", key=key).json()["lease"]
    assert lease.keys() == {"expires_at", "lease_seconds", "canceled"}
    assert (lease["lease_seconds"], lease["canceled"]) == (30, False)
    for _ in range(2):
        answer = settled(api, key, claim_id, "TOKEN=hunter2-hunter2", preview="TOKEN=…")
        assert answer.status_code == 200
        assert answer.json() == {"settlement": {"status": "completed", "canceled": False}}
    assert code(settled(api, key, claim_id)) == (409, "stale_claim")
    assert hands.tasks() == {"bash": ("completed", "TOKEN=hunter2-hunter2")}
    exported = api.get(f"{api.v3}/sessions/{hands.public(session)}/trajectory").text
    events = api.get(f"{api.v3}/sessions/{hands.public(session)}/events").text
    for text in (exported, events):
        assert "hunter2" not in text


def test_a_claim_waits_until_a_call_is_made(api, hands, worker):
    """It is woken by the commit: what it looks for anew by itself is later than this test lasts."""
    _, key = worker
    session = hands.session(MACHINE)

    async def both():
        asked = asyncio.create_task(
            api.send("POST", CLAIMS, key=key, json={"claim": {"wait_ms": 20_000}})
        )
        while not any(isinstance(it, tuple) for it in waiting._listening):
            await asyncio.sleep(0)
        await asyncio.to_thread(hands.call, session, "bash")
        return await asked

    assert api.runner.run(both()).json()["claim"]["tool"]["name"] == "bash"


def test_two_workers_that_wait_get_one_call_each(api, hands, worker):
    _, key = worker
    other = hands.enroll(machine="m").secret
    for _ in range(2):
        hands.call(hands.session(MACHINE), "bash")
    body = {"claim": {"wait_ms": 0}}
    answers = api.together(
        ("POST", CLAIMS, {"key": key, "json": body}), ("POST", CLAIMS, {"key": other, "json": body})
    )
    assert len({it.json()["claim"]["session_id"] for it in answers}) == 2


def test_a_worker_that_hung_up_is_given_nothing(api, hands, worker):
    """Else a call that nobody makes would wait for the end of its lease, and be uncertain."""
    _, key = worker
    hands.call(hands.session(MACHINE), "bash")
    sent = b'{"claim": {"wait_ms": 20000}}'
    parts = iter([{"type": "http.request", "body": sent, "more_body": False}])

    async def receive():
        return next(parts, {"type": "http.disconnect"})

    async def hang_up():
        said = []

        async def send(message):
            said.append(message)

        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
            "path": CLAIMS, "raw_path": CLAIMS.encode(), "query_string": b"", "root_path": "",
            "scheme": "http", "client": ("127.0.0.1", 1), "server": ("steno.test", 80),
            "headers": [(b"authorization", f"Bearer {key}".encode())],
        }  # fmt: skip
        await api.app(scope, receive, send)

    api.runner.run(hang_up())
    assert hands.dispatches() == ["queued"]


def test_a_worker_is_told_which_of_its_sessions_are_over(api, hands, worker):
    _, key = worker
    first, second = hands.session(MACHINE), hands.session(MACHINE)
    hands.call(first, "bash")
    hands.call(second, "read")
    over = claim(api, key)["claim"]["session_id"]
    here = claim(api, key, sessions=[over])["claim"]["session_id"]
    hands.write(lambda tx: start.cancel_session(tx, hands.owner, over))
    found = claim(api, key, sessions=[over, here, "none"], wait_ms=20_000)
    assert found == {"claim": None, "released": [over, "none"]}


def test_a_secret_that_is_no_worker_s_is_given_nothing(api):
    refused = [
        api.post(CLAIMS, key="executor", json={"claim": {}}),
        api.post(f"{CLAIMS}/none/lease", key="executor"),
        settled(api, "executor", "none"),
    ]
    assert [code(it) for it in refused] == [(409, "not_eligible")] * 3
    for key in ("member", "api", ""):
        assert api.post(CLAIMS, key=key, json={"claim": {}}).status_code == 401


def test_another_s_claim_is_no_other_than_one_that_never_was(api, hands, org, worker):
    _, key = worker
    stranger = hands.enroll(caller=org.stranger, machine="m").secret
    other = hands.enroll(machine="m").secret
    hands.call(hands.session(MACHINE), "bash")
    claim_id = claim(api, key)["claim"]["claim_id"]
    for who in (stranger, other):
        assert claim(api, who)["claim"] is None
        answers = [
            (api.post(f"{CLAIMS}/{it}/lease", key=who).json(), settled(api, who, it).json())
            for it in (claim_id, "none")
        ]
        assert answers[0] == answers[1]
        assert answers[0][0]["error"]["code"] == "stale_claim"


def test_a_cancelled_call_is_told_and_its_output_is_dropped(api, hands, worker):
    _, key = worker
    session = hands.session(MACHINE)
    hands.call(session, "bash")
    claim_id = claim(api, key)["claim"]["claim_id"]
    api.post(f"{api.v3}/sessions/{hands.public(session)}/cancel", json={})
    assert api.post(f"{CLAIMS}/{claim_id}/lease", key=key).json()["lease"]["canceled"] is True
    answer = settled(api, key, claim_id, "a late word")
    assert answer.json() == {"settlement": {"status": "canceled", "canceled": True}}
    assert hands.tasks() == {"bash": ("canceled", None)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"wait_ms": -1},
        {"wait_ms": 20_001},
        {"free": -1},
        {"sessions": "x"},
        {"sessions": [""]},
    ],
)
def test_a_claim_that_makes_no_sense(api, worker, wrong):
    refused = api.post(CLAIMS, key=worker[1], json={"claim": wrong})
    assert code(refused) == (400, "parameter_invalid")


def test_a_call_ends_as_a_call_can(api, hands, worker):
    _, key = worker
    hands.call(hands.session(MACHINE), "bash")
    claim_id = claim(api, key)["claim"]["claim_id"]
    for status in ("canceled", "running", "skipped"):
        assert code(settled(api, key, claim_id, status=status)) == (400, "parameter_invalid")
    assert settled(api, key, claim_id, status="timed_out").status_code == 200


# How far it is


def report(api, key, claim_id, text="so far", characters=6):
    body = {"progress": {"text": text, "characters": characters}}
    return api.post(f"{CLAIMS}/{claim_id}/progress", key=key, json=body)


@pytest.fixture
def held(api, hands, worker):
    """A claim of the worker's, and the row ids of its conversation."""
    hands.call(hands.session(MACHINE), "bash", command="x")
    claimed = claim(api, worker[1], free=1)["claim"]["claim_id"]
    return claimed, hands.rows("SELECT conversation_id FROM dispatches")[0][0]


def heard(api, conversation_id, act):
    """Return the frames that a watcher of the conversation hears while something is done."""

    async def watch():
        with live.Subscription(conversation_id, {"progress"}) as ear:
            answer = await asyncio.to_thread(act)
            frames = []
            while (item := await ear.next(0.05)) is not None:
                frames += [item] if isinstance(item, live.Frame) else []
            return answer, frames

    return asyncio.run(watch())


def test_what_a_call_has_written_is_told_to_who_watches_and_not_kept(api, worker, held):
    claimed, conversation_id = held
    before = every_row(api.database)
    assert report(api, worker[1], claimed).json() == {"progress": {"watched": False}}
    answer, (frame,) = heard(api, conversation_id, lambda: report(api, worker[1], claimed))
    assert answer.json() == {"progress": {"watched": True}}
    assert (frame.type, frame.data["text"], frame.data["characters"]) == (
        "tool_output",
        "so far",
        6,
    )
    assert frame.data["name"] == "bash"
    assert frame.data.keys() >= {"turn_public_id", "variant_public_id", "run_public_id", "task_key"}
    assert every_row(api.database) == before


def test_a_report_for_a_claim_that_is_no_more_is_stale(api, hands, worker, held):
    claimed, conversation_id = held
    other = hands.enroll(machine="m").secret
    assert code(report(api, other, claimed)) == (409, "stale_claim")
    assert code(report(api, worker[1], "none")) == (409, "stale_claim")
    assert settled(api, worker[1], claimed).status_code == 200
    late, frames = heard(api, conversation_id, lambda: report(api, worker[1], claimed))
    assert (code(late), frames) == ((409, "stale_claim"), [])


@pytest.mark.parametrize(
    "progress",
    [{}, {"text": "x"}, {"text": 1, "characters": 1}, {"text": "x", "characters": -1}],
)
def test_a_report_in_another_shape_is_refused(api, worker, held, progress):
    path = f"{CLAIMS}/{held[0]}/progress"
    answer = api.post(path, key=worker[1], json={"progress": progress})
    assert answer.status_code == 400, answer.text


def test_of_a_report_the_end_is_told(api, worker, held):
    claimed, conversation_id = held
    text = "x" * 20_000 + "the end"
    _, (frame,) = heard(api, conversation_id, lambda: report(api, worker[1], claimed, text, 5))
    assert frame.data["text"].endswith("xthe end")
    assert (len(frame.data["text"]), frame.data["characters"]) == (progress.SHOWN, len(text))


def test_half_a_secret_is_told_no_more_than_a_whole_one(api, hands, worker):
    def give(tx):
        secret.create(tx, hands.owner, hands.sealer, "PIN", "swordfish-1234")
        secret.give(tx, row, secret.take(tx, hands.owner, hands.sealer, ["PIN"]))

    row = hands.session(MACHINE)
    hands.write(give)
    hands.call(row, "bash", command="x")
    claimed = claim(api, worker[1], free=1)["claim"]["claim_id"]
    sent = [("a swordfish-1234 b sword", 24), ("fish-1234 " + "c" * 600, 2_000)]
    _, frames = heard(
        api, row, lambda: [report(api, worker[1], claimed, *one).raise_for_status() for one in sent]
    )
    texts = [frame.data["text"] for frame in frames]
    assert texts[0] == "a [redacted-secret] b "
    assert texts[1] == "c" * len(texts[1])
    assert len(texts[1]) > 100


def test_nobody_hears_of_a_call_that_is_hidden(api, hands, worker, held):
    claimed, conversation_id = held
    hands.write(
        lambda tx: tx.run("UPDATE tasks SET transcript_visibility = 'hidden' WHERE name = 'bash'")
    )
    answer, frames = heard(api, conversation_id, lambda: report(api, worker[1], claimed))
    assert (answer.status_code, frames) == (200, [])
