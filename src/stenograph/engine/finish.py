"""The `finish` tool: how an agent says what became of its session (reason-api.md 3)."""

import msgspec

from stenograph.engine.toolbox import ToolSpec
from stenograph.sessions.messages import Outcome

NAME = "finish"

SPEC = ToolSpec(
    NAME,
    "End the session. Say whether what was asked is done (success), could not be done (failure), or"
    " needs a person (action_required), and sum up the result in words for that person.",
    {
        "type": "object",
        "properties": {
            "outcome": {"type": "string", "enum": ["success", "failure", "action_required"]},
            "summary": {"type": "string"},
        },
        "required": ["outcome"],
        "additionalProperties": False,
    },
)


class Finish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an agent declares; without a summary, what it said beside the call is the result."""

    outcome: Outcome
    summary: str | None = None


def declared(arguments: str) -> Finish:
    """Read the arguments of the call, JSON; raises `msgspec.ValidationError`."""
    return msgspec.json.decode(arguments, type=Finish)
