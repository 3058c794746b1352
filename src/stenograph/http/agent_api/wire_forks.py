"""The shapes of forks."""

from msgspec import Struct

from stenograph.http.agent_api.wire import Conversation, Shape
from stenograph.http.agent_api.wire_turns import RunnerEffects


class NewFork(Struct):
    """Where to fork: at a turn, with its active candidate or the one you name; or, with `side`,
    beside what is going on."""

    turn_public_id: str | None = None
    variant_public_id: str | None = None
    title: str | None = None
    side: bool = False


class ForkBody(Struct):
    """The body that forks a conversation."""

    fork: NewFork


class ForkAnswer(Shape, kw_only=True):
    """A fork, and what runners had changed by the answer that it adopted."""

    conversation: Conversation
    runner_effects: RunnerEffects
