"""From a row of steps to turns: which step opens one, which belongs to it, how it ends.

A prompt opens a turn. What a person adds before the agent has acted, or while it acts, is a steer
of the same turn. Each model call is a round of the turn's run. When the turn ends, its last
message is the answer, and the feed gets a reply.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from stenograph.clock import now
from stenograph.conversations import store_variants
from stenograph.events.journal import Event
from stenograph.sessions.messages import Kind, Message, Outcome, replace_reply
from stenograph.storage.database import Tx
from stenograph.trajectories.importers.draft import StepDraft, TurnStatus
from stenograph.trajectories.recording import store
from stenograph.trajectories.recording.batch import SIZE, Batch, Place
from stenograph.trajectories.recording.columns import StepColumns, holds_audio, split

#: How the end of a turn reads as the status of a session (reason-api.md 3).
SESSION_STATUS: dict[TurnStatus, str] = {
    "running": "running",
    "completed": "exit",
    "failed": "error",
    "canceled": "cancelled",
    "timed_out": "error",
}

#: How a turn ended that the log says nothing else of.
COMPLETED: tuple[TurnStatus, str | None] = ("completed", None)


@dataclass(slots=True)
class OpenTurn:
    """The turn that is being recorded; `ordinal` is that of its newest prompt, among all prompts.

    `round` is the number that its next model call gets. `heard`: a model call of it was recorded
    here; else what its last one said and ran on is in the record.
    """

    id: int
    variant_id: int
    run_id: int
    ordinal: int
    round: int = 1
    answer: str | None = None
    model: tuple[str | None, str | None, bool | None, str | None] = (None, None, None, None)
    last_at: int | None = None
    heard: bool = False

    @property
    def acted(self) -> bool:
        return self.round > 1


@dataclass(slots=True)
class Target:
    """The conversation that is written into; `source` is that of its variants."""

    conversation_id: int
    workspace_id: int
    organization_id: int
    agent_model: str | None
    source: str
    answerer_id: int | None = None
    speaker_id: int | None = None


@dataclass(slots=True)
class Recorder:
    """Writes steps into a conversation, in order, batch by batch."""

    tx: Tx
    target: Target
    ends: dict[int, tuple[TurnStatus, str | None]] = field(default_factory=dict)
    open: OpenTurn | None = None
    prompts: int = 0
    #: Turn ids by the ordinal of the prompt that opened them or was added to them.
    turns: dict[int, int] = field(default_factory=dict)
    #: Steps go into this candidate of an existing turn instead of opening turns.
    candidate: bool = False
    #: Whether a step with audio went by (it makes an export ATIF 1.8).
    audio: bool = False

    def add(self, drafts: Sequence[StepDraft]) -> None:
        """Record steps. The last turn stays open."""
        waiting = iter(drafts)
        while batch := list(islice(waiting, SIZE)):
            self._add(batch)

    def _add(self, drafts: list[StepDraft]) -> None:
        columns = [split(draft.step, self.target.agent_model) for draft in drafts]
        self.audio = self.audio or any(map(holds_audio, columns))
        batch = Batch(self.tx, self.target.conversation_id)
        agents = [c if d.part == "agent" else None for d, c in zip(drafts, columns, strict=True)]
        batch.reserve(agents)
        first = store.take_positions(self.tx, self.target.conversation_id, len(drafts))
        for position, (draft, parts) in enumerate(zip(drafts, columns, strict=True), first):
            self._step(batch, position, draft, parts)
        batch.flush()

    def _step(self, batch: Batch, position: int, draft: StepDraft, parts: StepColumns) -> None:
        text = draft.part in ("steer", "system")
        if draft.part == "prompt":
            text = self._prompt(batch, draft, parts)
        elif draft.part in ("agent", "steer") and self.open is None:
            prompt = parts.text if draft.part == "steer" else None
            self._open(batch, parts, prompt=prompt, ordinal=self.prompts - 1)
            text = False
        place = Place(self.target.conversation_id)
        if turn := self.open:
            place = Place(
                self.target.conversation_id, turn.id, turn.variant_id, turn.run_id, turn.round
            )
            turn.last_at = parts.occurred_at or turn.last_at
        step_id = batch.step(place, position, draft, parts, text=text)
        if draft.part == "agent" and turn is not None:
            turn.round += 1
            turn.heard = True
            turn.answer = parts.text
            turn.model = (draft.provider_id, parts.model, draft.reasoning_enabled, parts.effort)
        elif text and draft.part != "system":
            self._steer(batch, draft, parts, step_id)

    def _prompt(self, batch: Batch, draft: StepDraft, parts: StepColumns) -> bool:
        """Open a turn, or add to the one that has not acted yet. True: the text is the step's."""
        ordinal, self.prompts = self.prompts, self.prompts + 1
        turn = self.open
        if turn is not None and (
            self.candidate or (not turn.acted and turn.ordinal not in self.ends)
        ):
            self.turns[ordinal] = turn.id
            turn.ordinal = ordinal
            return turn.acted or not self.candidate
        if turn is not None:
            self.close(batch)
        self._open(batch, parts, prompt=parts.text, origin=draft.origin, ordinal=ordinal)
        return False

    def _open(
        self,
        batch: Batch,
        parts: StepColumns,
        *,
        prompt: str | None,
        ordinal: int,
        origin: str = "person",
    ) -> None:
        at = parts.occurred_at or now()
        batch.flush()  # what came before is written before, so that feeds keep the order
        turn_id, position = store.open_turn(
            self.tx, self.target, origin if prompt is not None else "agent", at
        )
        self.open = start_variant(self.tx, self.target, turn_id, prompt, at, ordinal)
        store_variants.activate(self.tx, turn_id, self.open.variant_id)
        self.turns.setdefault(ordinal, turn_id)
        batch.events.append(
            Event("turn_created", turn_id=turn_id, variant_id=self.open.variant_id, occurred_at=at)
        )
        if prompt is not None:
            kind: Kind = "message" if position else "prompt"
            batch.messages.append(
                Message(
                    kind=kind,
                    role="user",
                    turn_id=turn_id,
                    variant_id=self.open.variant_id,
                    source="subagent" if origin == "child" else None,
                    created_at=parts.occurred_at,
                )
            )

    def _steer(self, batch: Batch, draft: StepDraft, parts: StepColumns, step_id: int) -> None:
        if self.candidate:
            return
        turn = self.open
        batch.messages.append(
            Message(
                kind="message",
                role="user",
                turn_id=turn.id if turn else None,
                step_id=step_id,
                source="subagent" if draft.origin == "child" else None,
                created_at=parts.occurred_at,
            )
        )
        batch.events.append(
            Event(
                "input_accepted",
                turn_id=turn.id if turn else None,
                step_id=step_id,
                payload={"delivery_mode": "steer"},
                occurred_at=parts.occurred_at,
            )
        )

    def close(
        self,
        batch: Batch | None = None,
        *,
        outcome: Outcome | None = None,
        answer: str | None = None,
    ) -> TurnStatus | None:
        """End the open turn, and answer how it ended; None if there is none.

        `answer` stands in place of what its last model call said.
        """
        turn = self.open
        if turn is None:
            return None
        if not turn.heard:
            _recall(self.tx, turn)
        if answer is not None:
            turn.answer = answer
        own = batch or Batch(self.tx, self.target.conversation_id)
        status, reason = self.ends.get(turn.ordinal, COMPLETED)
        at = turn.last_at or now()
        store.close_turn(self.tx, turn, status, reason, at)
        own.events.append(
            Event(
                "turn_status",
                turn_id=turn.id,
                variant_id=turn.variant_id,
                run_id=turn.run_id,
                payload={"status": status, "variant_status": status},
                occurred_at=at,
            )
        )
        own.flush()
        if not self.candidate:
            reply = Message(
                kind="reply",
                role="assistant",
                turn_id=turn.id,
                variant_id=turn.variant_id,
                status=SESSION_STATUS[status],
                outcome=outcome or ("success" if status == "completed" else None),
                created_at=at,
            )
            replace_reply(self.tx, self.target.conversation_id, reply)
        self.open = None
        return status


def start_variant(
    tx: Tx, target: Target, turn_id: int, prompt: str | None, at: int, ordinal: int
) -> OpenTurn:
    """Add a candidate with its run to a turn."""
    variant_id = store.open_variant(tx, turn_id, target.source, prompt, at)
    run_id = store.open_run(tx, target, variant_id, at)
    return OpenTurn(turn_id, variant_id, run_id, ordinal)


def _recall(tx: Tx, turn: OpenTurn) -> None:
    """Take from the record what a turn's last model call said, and what it ran on."""
    if found := store.last_round(tx, turn.run_id):
        provider_id, model_ref, enabled, effort, turn.answer = found
        turn.model = (provider_id, model_ref, None if enabled is None else bool(enabled), effort)
