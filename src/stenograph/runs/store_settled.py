"""The SQL of what came of tasks."""

from collections.abc import Collection

from stenograph.storage.database import Row, Tx, among


def tasks(tx: Tx, ids: Collection[int]) -> list[Row]:
    """Return (task, key, mainline, name, call id, error, message, prompt, cached and completion
    tokens, cost) of tasks; the message and tokens are of a round's selected model call."""
    return tx.rows(
        "SELECT k.id, k.key, k.mainline, k.name, k.tool_call_id, k.error, d.message,"
        " u.prompt_tokens, u.cached_tokens, u.completion_tokens, u.cost_usd FROM tasks k"
        " LEFT JOIN invocation_details d ON d.invocation_id = k.selected_invocation_id"
        " LEFT JOIN usage_receipts u ON u.invocation_id = k.selected_invocation_id"
        f" WHERE {among('k.id', ids)}"
    )
