"""The input queue of a conversation."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from stenograph.client.calls import (
    Answer,
    Call,
    convert,
    given,
    member,
    new_key,
    nothing,
    one,
    several,
)
from stenograph.client.records import InputQueue
from stenograph.client.surface import Resource, Via, operation
from stenograph.client.turn_records import Input, InputReceipt, Inputs, Materialization


class InputFields(TypedDict, total=False):
    """What an input may say besides its text.

    `model` has `model` (`provider/name`), `reasoning_enabled`, `reasoning_effort`. `delivery_mode`:
    `queue`, `steer` or `steer_now`. `tool_names`: all if left out. `deliver_in` counts seconds,
    `deliver_at` is a moment. Of an attachment: `filename`, `content_type` and `data` in base64, or
    the `public_id` of one that is there.
    """

    role: str | None
    entries: Sequence[Mapping[str, Any]] | None
    attachments: Sequence[Mapping[str, Any]] | None
    model: Mapping[str, Any] | None
    configuration: Mapping[str, Any] | None
    tool_names: Sequence[str] | None
    approval_mode: str | None
    delivery_mode: str | None
    expected_steering_run_public_id: str | None
    deliver_at: str | None
    deliver_in: int | None
    context_mode: str | None
    instructions: str | None
    inline: Sequence[Mapping[str, Any]] | None
    history: Mapping[str, Any] | None
    reasoning_replay: Mapping[str, Any] | None
    variables: Mapping[str, Any] | None
    expected_context_revision: int | None
    expected_tail_turn_public_id: str | None
    visible_in_context: bool | None


class NewFields(InputFields, total=False):
    """What an input may say when it is made. `kind`: `direct_reply`, or `message`, which no model
    answers."""

    kind: str | None


class ChangedFields(InputFields, total=False):
    """What may change of an input; what is None is as if it had never been said."""

    text: str | None
    answering_user_public_id: str | None


class InputCollection(Resource[Via]):
    """`conversation.inputs`."""

    @operation
    def list(self) -> Call[Inputs]:
        """Read what waits."""
        return Call("GET", self._path(), _inputs)

    @operation
    def create(
        self,
        text: str | None = None,
        *,
        to: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[NewFields],
    ) -> Call[InputReceipt]:
        """Put an input into the queue; it becomes a turn when no other is being answered.

        `to` is who answers: an id, or `@handle`. What it became is its `materialization`.
        """
        key = new_key(idempotency_key)

        def read(answer: Answer) -> InputReceipt:
            made = convert(answer, member(answer, "input"), Input)
            return InputReceipt(input=made, replayed=answer.replayed, idempotency_key=key)

        new = given(text=text, answering_user_public_id=to, **fields)
        body = {"input": new}
        return Call("POST", self._path(), read, status=202, body=body, idempotency_key=key)

    @operation
    def update(
        self,
        input_id: str,
        *,
        expected_lock_version: int | None = None,
        **fields: Unpack[ChangedFields],
    ) -> Call[Input]:
        """Edit an input that waits; what is left out stays. One that is blocked stands in line
        again."""
        new = {**fields, **given(expected_lock_version=expected_lock_version)}
        return Call("PATCH", self._path(input_id), one("input", Input), body={"input": new})

    @operation
    def delete(self, input_id: str) -> Call[None]:
        """Take an input out of the queue; one that steers a turn will not any more."""
        return Call("DELETE", self._path(input_id), nothing, status=204)

    @operation
    def reorder(self, input_ids: Sequence[str]) -> Call[Inputs]:
        """Put the queue in another order. Name exactly what waits for a turn of its own."""
        body = {"inputs": input_ids}
        return Call("POST", self._path("reorder"), _inputs, body=body)

    @operation
    def materialization(
        self, input_id: str, *, include_hidden: bool | None = None
    ) -> Call[Materialization | None]:
        """Read which turn an input became; None while it waits."""
        return Call(
            "GET",
            self._path(input_id, "materialization"),
            one("materialization", Materialization),
            query={"include_hidden": include_hidden},
            none_if_missing=True,
        )


def _inputs(answer: Answer) -> Inputs:
    queue = convert(answer, member(answer, "input_queue"), InputQueue)
    return Inputs(items=several("inputs", Input)(answer), input_queue=queue)
