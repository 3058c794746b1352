"""Exports of more steps than are read at once: nothing missing, nothing twice, all of it masked."""

import pytest

from exports import exported
from stenograph.trajectories.atif.format import Agent, Step
from stenograph.trajectories.export.store import CHUNK
from stenograph.trajectories.importers.draft import SessionDraft, StepDraft
from stenograph.trajectories.recording.record import record

SECRET = "hunter2-correct-horse"
LENGTHS = [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 7]


def session(database, org, texts: list[str]) -> str:
    steps = [
        StepDraft("prompt", Step(step_id=1, source="user", message=text))
        if number == 0
        else StepDraft("agent", Step(step_id=1, source="agent", message=text))
        for number, text in enumerate(texts)
    ]
    agent = Agent(name="long", version="1")
    draft = SessionDraft(format="claude-code", agent=agent, steps=steps, key=str(len(texts)))
    return database.write(lambda tx: record(tx, org.owner, draft))[0].session_id


@pytest.mark.parametrize("length", LENGTHS)
def test_every_step_once_and_in_order(database, org, length):
    texts = [f"text {number}" for number in range(length)]
    steps = exported(database, session(database, org, texts))["steps"]
    assert [step["message"] for step in steps] == texts
    assert [step["step_id"] for step in steps] == list(range(1, length + 1))


@pytest.mark.parametrize("tier", ["standard", "ephemeral"])
@pytest.mark.parametrize("every", [1, CHUNK // 3, CHUNK, 2 * CHUNK])
def test_a_secret_is_masked_wherever_it_stands(database, org, tier, every):
    """Chunks that need masking stand among chunks that do not."""
    length = 4 * CHUNK + 1
    texts = [f"{n} {SECRET}" if n % every == every - 1 else f"{n} plain" for n in range(length)]
    document = exported(database, session(database, org, texts), tier, [SECRET])
    masked = [text.replace(SECRET, "[redacted-secret]") for text in texts]
    assert [step["message"] for step in document["steps"]] == masked
    counted = document["extra"]["fidelity"]["redactions"]
    assert counted == {"[redacted-secret]": length // every}
