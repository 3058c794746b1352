"""The SQL of what inputs bring to a turn's requests."""

from collections.abc import Collection

from stenograph.storage.database import Row, Tx, among


def steers_with_files(tx: Tx, variant_ids: Collection[int]) -> list[Row]:
    """Return (candidate, place, rest) of the steers of candidates that came with something."""
    return tx.rows(
        "SELECT variant_id, position, rest FROM steps WHERE part = 'steer' AND rest IS NOT NULL"
        f" AND {among('variant_id', variant_ids)}"
    )


def was_asked_apart(tx: Tx, task_id: int) -> bool:
    """Tell whether a round belongs to a turn whose requests are not the whole history, because its
    input brought a context of its own, or wanted no reasoning replayed."""
    return bool(
        tx.value(
            "SELECT 1 FROM tasks k JOIN runs r ON r.id = k.run_id"
            " JOIN variants v ON v.id = r.variant_id JOIN turns t ON t.id = v.turn_id"
            " JOIN inputs n ON n.id = t.input_id WHERE k.id = :id"
            ' AND (n.options LIKE \'%"context_mode":"raw"%\''
            "  OR n.options LIKE '%\"reasoning_replay\":%')",
            id=task_id,
        )
    )
