"""The turns of a conversation: their candidates, what those were asked and what they thought."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stenograph.client.calls import (
    Answer,
    Call,
    convert,
    given,
    member,
    new_key,
    nothing,
    older,
    one,
    path,
    several,
    whole,
)
from stenograph.client.records import OlderPage
from stenograph.client.steps import Give, Script, older_pages
from stenograph.client.surface import Resource, Via, iteration, operation
from stenograph.client.turn_records import (
    Deck,
    ReasoningItem,
    Regeneration,
    Request,
    Turn,
    TurnName,
    TurnPage,
    Variant,
)

#: Above every position.
_END = 2**31 - 1


class TurnCollection(Resource[Via]):
    """`conversation.turns`."""

    @operation
    def list(
        self,
        *,
        after_position: int | None = None,
        before_position: int | None = None,
        limit: int | None = None,
        include_hidden: bool | None = None,
    ) -> Call[TurnPage]:
        """Read turns in order of position: from the oldest on, those behind a position, or the
        nearest ones before a position. Raises `ValueError` for both positions."""
        if after_position is not None and before_position is not None:
            raise ValueError("Give after_position or before_position, not both")
        query = {
            "after_position": after_position,
            "before_position": before_position,
            "limit": limit,
            "include_hidden": include_hidden,
        }
        return Call("GET", self._path(), _turns, query=query)

    @iteration
    def each(
        self, *, include_hidden: bool | None = None, newest_first: bool = False
    ) -> Script[Turn]:
        """Give all turns."""
        place: dict[str, int] = {"before_position": _END} if newest_first else {}
        while True:
            page: TurnPage = yield TurnCollection.list.call(
                self, limit=100, include_hidden=include_hidden, **place
            )
            for turn in reversed(page.items) if newest_first else page.items:
                yield Give(turn)
            if not page.items:
                return
            if newest_first:
                place = {"before_position": page.items[0].position}
            else:
                place = {"after_position": page.items[-1].position}

    @operation
    def fetch(self, turn_id: str, *, include_hidden: bool | None = None) -> Call[Turn]:
        """Read one turn; a hidden one only with `include_hidden`."""
        query = {"include_hidden": include_hidden}
        return Call("GET", self._path(turn_id), one("turn", Turn), query=query)

    @operation
    def set_view_state(
        self, turn_id: str, *, visibility: str | None = None, concealed: bool | None = None
    ) -> Call[TurnName]:
        """Make a turn `visible`, `excluded_from_context` or `hidden`, or conceal it; in a fork, for
        the fork only."""
        body = {"turn": given(visibility=visibility, concealed=concealed)}
        return Call("PATCH", self._path(turn_id), one("turn", TurnName), body=body)

    @operation
    def delete(self, turn_id: str) -> Call[None]:
        """Delete the newest turn."""
        return Call("DELETE", self._path(turn_id), nothing, status=204)

    @operation
    def edit(
        self,
        turn_id: str,
        *,
        text: str | None = None,
        entries: Sequence[Mapping[str, Any]] | None = None,
    ) -> Call[Variant]:
        """Say something else in a turn's place: a new candidate, which the turn shows."""
        body = {"edit": given(text=text, entries=entries)}
        return Call("POST", self._path(turn_id, "edit"), one("variant", Variant), body=body)

    @operation
    def regenerate(
        self,
        turn_id: str,
        *,
        model: Mapping[str, Any] | None = None,
        configuration: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Regeneration]:
        """Have a turn answered anew; it shows the old answer until the new one is there."""
        key = new_key(idempotency_key)
        return Call(
            "POST",
            self._path(turn_id, "regeneration"),
            _regeneration(key),
            status=202,
            body={"regeneration": given(model=model, configuration=configuration)},
            idempotency_key=key,
        )

    @operation
    def regeneration_receipt(self, idempotency_key: str) -> Call[Regeneration]:
        """Read what a `regenerate` with this key was answered."""
        return Call(
            "GET",
            path(*self._at[:-1], "regeneration_receipt"),
            _regeneration(idempotency_key),
            query={"idempotency_key": idempotency_key},
        )

    @operation
    def variants(self, turn_id: str) -> Call[Deck]:
        """Read the candidates of a turn that are not concealed."""
        return Call("GET", self._path(turn_id, "variants"), whole(Deck))

    @operation
    def activate(self, turn_id: str, variant_id: str) -> Call[Variant]:
        """Let the turn show this candidate; what the replaced one had under way ends for good."""
        at = self._path(turn_id, "variants", variant_id, "activation")
        return Call("POST", at, one("variant", Variant))

    @operation
    def set_variant_view_state(
        self, turn_id: str, variant_id: str, *, concealed: bool
    ) -> Call[Variant]:
        """Conceal a candidate, or bring it back; for everyone who sees the turn."""
        at = self._path(turn_id, "variants", variant_id)
        body = {"variant": {"concealed": concealed}}
        return Call("PATCH", at, one("variant", Variant), body=body)

    @operation
    def request(self, turn_id: str, variant_id: str) -> Call[Request]:
        """Read what was sent to the model for a candidate; of a run, its first round's request."""
        at = self._path(turn_id, "variants", variant_id, "request")
        return Call("GET", at, one("request", Request))

    @operation
    def reasoning(
        self,
        turn_id: str,
        variant_id: str,
        before: str | None = None,
        limit: int | None = None,
    ) -> Call[OlderPage[ReasoningItem]]:
        """Read the displayable reasoning kept for a candidate: the newest page, or, with
        `next_before` of a page, the one before it; each in order of creation.

        Raises `InvalidRequest` with the code `execution_details_pruned` once it was collected.
        """
        return Call(
            "GET",
            self._path(turn_id, "variants", variant_id, "reasoning"),
            older("items", ReasoningItem),
            query={"before": before, "limit": limit},
        )

    @iteration
    def iter_reasoning(
        self, turn_id: str, variant_id: str, *, newest_first: bool = False
    ) -> Script[ReasoningItem]:
        """Give all of a candidate's reasoning. In order of creation it is all read before the first
        item is given."""
        return older_pages(
            lambda before: TurnCollection.reasoning.call(self, turn_id, variant_id, before, 100),
            newest_first=newest_first,
        )


def _turns(answer: Answer) -> TurnPage:
    found = member(answer, "pagination")
    page = {"items": several("turns", Turn)(answer), **(found if isinstance(found, dict) else {})}
    return convert(answer, page, TurnPage)


def _regeneration(key: str) -> Callable[[Answer], Regeneration]:
    def read(answer: Answer) -> Regeneration:
        return Regeneration(
            turn_public_id=convert(answer, member(answer, "turn", "public_id"), str),
            turn_status=convert(answer, member(answer, "turn", "status"), str),
            variant=one("variant", Variant)(answer),
            replayed=answer.replayed,
            idempotency_key=key,
        )

    return read
