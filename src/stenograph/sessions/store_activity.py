"""The SQL of what a session's events point at."""

from collections.abc import Collection

from stenograph.storage.database import Row, Tx, among

#: The longest arguments that are read, in characters of JSON.
ARGUMENTS = 16_000


def prompts(tx: Tx, variant_ids: Collection[int]) -> list[Row]:
    """Return (candidate, prompt, why it failed)."""
    return tx.rows(
        f"SELECT id, prompt, failure_reason FROM variants WHERE {among('id', variant_ids)}"
    )


def steers(tx: Tx, step_ids: Collection[int]) -> list[Row]:
    """Return (step, text)."""
    return tx.rows(f"SELECT id, text FROM steps WHERE {among('id', step_ids)}")


def rounds(tx: Tx, task_ids: Collection[int]) -> list[Row]:
    """Return (task, provider, model, effort, message, reasoning, prompt, cached and completion
    tokens, cost) of model calls, by their selected invocation."""
    return tx.rows(
        "SELECT k.id, i.provider_id, i.model_ref, i.reasoning_effort, d.message, d.reasoning,"
        " u.prompt_tokens, u.cached_tokens, u.completion_tokens, u.cost_usd"
        " FROM tasks k JOIN invocations i ON i.id = k.selected_invocation_id"
        " LEFT JOIN invocation_details d ON d.invocation_id = i.id"
        " LEFT JOIN usage_receipts u ON u.invocation_id = i.id"
        f" WHERE {among('k.id', task_ids)}"
    )


def calls(tx: Tx, task_ids: Collection[int], longest: int) -> list[Row]:
    """Return (task, call id, name, status, error, child session, arguments, result, its length).

    The result is cut after `longest` characters; arguments that are too long are NULL.
    """
    return tx.rows(
        "SELECT k.id, k.tool_call_id, k.name, k.status, k.error, c.public_id,"
        " CASE WHEN length(d.input) <= :arguments THEN d.input END,"
        " substr(d.output, 1, :longest), length(d.output)"
        " FROM tasks k LEFT JOIN task_details d ON d.task_id = k.id"
        " LEFT JOIN conversations c ON c.id = k.child_conversation_id AND c.deleted_at IS NULL"
        f" WHERE {among('k.id', task_ids)}",
        arguments=ARGUMENTS,
        longest=longest,
    )
