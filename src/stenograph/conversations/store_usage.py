"""The SQL of what model calls took. The database keeps the sums itself (migration 0005)."""

from stenograph.storage.database import Row, Tx


def totals(tx: Tx, conversation_id: int) -> Row | None:
    """Return the sums of a conversation's receipts: count, prompt, cached, cache writes,
    completion, reasoning, cost, and how many have no cost. None: there was no receipt yet."""
    return tx.row(
        "SELECT requests, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens,"
        " reasoning_tokens, cost_usd, uncosted FROM usage_totals WHERE conversation_id = :id",
        id=conversation_id,
    )


def last_receipt(tx: Tx, conversation_id: int) -> Row | None:
    """Return the newest receipt of a turn that is there: prompt, completion, cached tokens,
    provider, model."""
    return tx.row(
        "SELECT prompt_tokens, completion_tokens, cached_tokens, provider_id, model_ref"
        " FROM usage_receipts WHERE conversation_id = :id"
        " AND (run_id IS NOT NULL OR variant_id IS NOT NULL) ORDER BY id DESC LIMIT 1",
        id=conversation_id,
    )
