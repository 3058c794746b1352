"""The SQL of candidate answers."""

from collections.abc import Sequence

from stenograph.storage.database import Row, Tx, among

_VARIANT = (
    "v.id, v.public_id, v.turn_id, v.position, v.source, v.status, v.provider_id, v.model_ref,"
    " v.reasoning_enabled, v.reasoning_effort, v.invocation_id, v.deleted_at,"
    " v.details_pruned_at, v.prompt, v.content, o.public_id"
)
_ORIGIN = " LEFT JOIN variants o ON o.id = v.origin_variant_id"


def add(tx: Tx, turn_id: int, **columns: object) -> int:
    """Add a candidate at the end of a turn's deck; the caller holds the conversation."""
    position = tx.value(
        "SELECT COALESCE(max(position) + 1, 0) FROM variants WHERE turn_id = :id", id=turn_id
    )
    return tx.insert("variants", turn_id=turn_id, position=int(position), **columns)


def find(tx: Tx, turn_id: int, public_id: str) -> Row | None:
    """Find a candidate of a turn, concealed or not."""
    return tx.row(
        f"SELECT {_VARIANT} FROM variants v{_ORIGIN}"
        " WHERE v.turn_id = :turn_id AND v.public_id = :public_id",
        turn_id=turn_id,
        public_id=public_id,
    )


def deck(tx: Tx, turn_id: int) -> list[Row]:
    """List a turn's candidates that are not concealed, by their place in the deck."""
    return tx.rows(
        f"SELECT {_VARIANT} FROM variants v{_ORIGIN}"
        " WHERE v.turn_id = :turn_id AND v.deleted_at IS NULL ORDER BY v.position",
        turn_id=turn_id,
    )


def shown(tx: Tx, turn_ids: Sequence[int], active_ids: Sequence[int]) -> list[Row]:
    """Return the active candidates of turns, and those under way beside them."""
    return tx.rows(
        f"SELECT {_VARIANT} FROM variants v{_ORIGIN} WHERE v.deleted_at IS NULL"
        f" AND ({among('v.id', active_ids)} OR ({among('v.turn_id', turn_ids)}"
        " AND v.status IN ('pending', 'running'))) ORDER BY v.position"
    )


def activate(tx: Tx, turn_id: int, variant_id: int) -> None:
    """Make a candidate the one that its turn shows."""
    tx.run(
        "UPDATE turns SET active_variant_id = :variant_id WHERE id = :id",
        id=turn_id,
        variant_id=variant_id,
    )


def settle(tx: Tx, variant_id: int, **columns: object) -> None:
    """Write how a candidate stands."""
    sets = ", ".join(f"{name} = :{name}" for name in columns)
    tx.run(f"UPDATE variants SET {sets} WHERE id = :id", id=variant_id, **columns)


def set_reasoning(
    tx: Tx,
    variant_id: int,
    *,
    reasoning: str | None,
    reasoning_trace: str | None,
) -> None:
    """Write what a candidate's own model call thought, which retention deletes."""
    tx.run(
        "INSERT INTO variant_details (variant_id, reasoning, reasoning_trace)"
        " VALUES (:variant_id, :reasoning, :reasoning_trace)"
        " ON CONFLICT (variant_id) DO UPDATE SET"
        " reasoning = excluded.reasoning, reasoning_trace = excluded.reasoning_trace",
        variant_id=variant_id,
        reasoning=reasoning,
        reasoning_trace=reasoning_trace,
    )


def set_reference(tx: Tx, variant_id: int, reference: str) -> None:
    """Write what a side's snapshot refers to; retention leaves it."""
    tx.run(
        "INSERT INTO variant_details (variant_id, reference) VALUES (:id, :reference)"
        " ON CONFLICT (variant_id) DO UPDATE SET reference = excluded.reference",
        id=variant_id,
        reference=reference,
    )


def public_id(tx: Tx, variant_id: int | None) -> str:
    """Return the public id of a candidate."""
    return str(tx.value("SELECT public_id FROM variants WHERE id = :id", id=variant_id))


def copy_details(tx: Tx, source_id: int, variant_id: int) -> None:
    """Give an adopted candidate the texts of its original."""
    tx.run(
        "INSERT INTO variant_details (variant_id, preface, reasoning, reasoning_trace, reference)"
        " SELECT CAST(:variant_id AS BIGINT), preface, reasoning, reasoning_trace, reference"
        " FROM variant_details WHERE variant_id = :source_id",
        variant_id=variant_id,
        source_id=source_id,
    )


def active_variant(tx: Tx, turn_id: int) -> int | None:
    """Return the candidate that a turn shows."""
    found = tx.value("SELECT active_variant_id FROM turns WHERE id = :id", id=turn_id)
    return None if found is None else int(found)


def first_variant(tx: Tx, turn_id: int) -> tuple[str, str | None] | None:
    """Return the original candidate of a turn and its run, unless it is concealed."""
    row = tx.row(
        "SELECT v.public_id, r.public_id, v.deleted_at FROM variants v"
        " LEFT JOIN runs r ON r.variant_id = v.id"
        " WHERE v.turn_id = :id ORDER BY v.position LIMIT 1",
        id=turn_id,
    )
    return None if row is None or row[2] is not None else (row[0], row[1])
