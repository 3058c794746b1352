"""The words of the journal, and the members of each one's payload (agent-api.md 7).

Beside its own members a payload names the rows that its event points at: `turn_public_id`,
`turn_kind`, `variant_public_id`, `run_public_id`, `task_key`. None holds what anyone said.
"""

from typing import Literal, TypeAlias, get_args

Type: TypeAlias = Literal[
    "input_accepted", "input_edited", "input_deleted", "input_materialized", "input_blocked",
    "turn_created", "turn_status", "turn_variant", "task_status", "round_result", "usage",
    "attention_required", "context_trimmed", "context_compacted", "reasoning_replay_downgraded",
    "fork_created", "visibility", "soft_delete", "turn_deleted", "default_runner_changed",
    "task_deadline_extended", "access_changed", "conversation_ended",
]  # fmt: skip

TYPES: frozenset[str] = frozenset(get_args(Type))

#: What a follower of a conversation's course hears.
LIFECYCLE: frozenset[str] = frozenset({"turn_status", "attention_required", "conversation_ended"})

#: The members that a payload may have besides the names of rows; a member whose value is not known
#: is left out.
PAYLOADS: dict[str, frozenset[str]] = {
    "input_accepted": frozenset({"input_public_id", "kind", "delivery_mode"}),
    "input_edited": frozenset({"input_public_id", "lock_version"}),
    "input_deleted": frozenset({"input_public_id"}),
    "input_materialized": frozenset({"input_public_id"}),
    "input_blocked": frozenset({"input_public_id", "blocked_reason"}),
    "turn_created": frozenset({"status"}),
    # Without `status` it is a note on the run, and no transition of the turn.
    "turn_status": frozenset({"status", "variant_status", "run_status"}),
    "turn_variant": frozenset({"source", "status", "active"}),
    "task_status": frozenset({"status"}),
    "round_result": frozenset({"status"}),
    "usage": frozenset(
        {
            "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens",
            "reasoning_tokens", "cost_usd",
        }
    ),
    "attention_required": frozenset({"reason"}),
    "context_trimmed": frozenset({"left_out", "window_tokens"}),
    "context_compacted": frozenset(
        {"summary_task_key", "turns", "rounds", "tokens_before", "summary_tokens"}
    ),
    "reasoning_replay_downgraded": frozenset({"provider_id", "messages"}),
    "fork_created": frozenset({"fork_public_id"}),
    "visibility": frozenset({"visibility"}),
    "soft_delete": frozenset({"concealed"}),
    "turn_deleted": frozenset({"position"}),
    "default_runner_changed": frozenset({"executor_public_id"}),
    "task_deadline_extended": frozenset({"deadline_at"}),
    "access_changed": frozenset({"default"}),
    "conversation_ended": frozenset({"reason"}),
}  # fmt: skip
