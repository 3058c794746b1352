"""The SQL of attachments."""

from collections.abc import Collection

from stenograph.storage.database import Row, Tx, among

_ABOUT = "a.public_id, a.filename, a.content_type, a.byte_size"
#: The input of an attachment that went into a turn that ran, and so opened none.
_STEER = "CASE WHEN n.consumed_at IS NOT NULL AND n.turn_id IS NULL THEN n.public_id END"


def add(tx: Tx, conversation_id: int, **columns: object) -> None:
    """Keep a file."""
    tx.insert("attachments", conversation_id=conversation_id, **columns)


def delete(tx: Tx, public_id: str) -> None:
    """Delete a file."""
    tx.run("DELETE FROM attachments WHERE public_id = :public_id", public_id=public_id)


def delete_of_input(tx: Tx, input_id: int) -> None:
    """Delete the files of an input that has not become anything."""
    tx.run("DELETE FROM attachments WHERE input_id = :id AND variant_id IS NULL", id=input_id)


def find(tx: Tx, public_id: str) -> Row | None:
    """Find a file: its conversation, whether its input waits, its turn, whether its candidate is
    concealed, then name, type and bytes."""
    return tx.row(
        "SELECT a.conversation_id, n.id IS NOT NULL AND n.consumed_at IS NULL, t.public_id,"
        " v.deleted_at IS NOT NULL, a.filename, a.content_type, a.data FROM attachments a"
        " LEFT JOIN inputs n ON n.id = a.input_id LEFT JOIN variants v ON v.id = a.variant_id"
        " LEFT JOIN turns t ON t.id = v.turn_id WHERE a.public_id = :public_id",
        public_id=public_id,
    )


def of_inputs_ids(tx: Tx, input_id: int) -> list[str]:
    """Return the public ids of an input's files, in order."""
    rows = tx.rows(
        "SELECT public_id FROM attachments WHERE input_id = :id ORDER BY id", id=input_id
    )
    return [row[0] for row in rows]


def of_inputs(tx: Tx, input_ids: Collection[int]) -> list[Row]:
    """Return the files of inputs: input, then what a row says of each."""
    return tx.rows(
        f"SELECT a.input_id, {_ABOUT} FROM attachments a WHERE {among('a.input_id', input_ids)}"
        " ORDER BY a.id"
    )


def of_variants(tx: Tx, variant_ids: Collection[int]) -> list[Row]:
    """Return the files with which candidates were asked: candidate, then what a row says."""
    return tx.rows(
        f"SELECT a.variant_id, {_ABOUT} FROM attachments a LEFT JOIN inputs n ON n.id = a.input_id"
        f" WHERE {among('a.variant_id', variant_ids)} AND {_STEER} IS NULL ORDER BY a.id"
    )


def listed(tx: Tx, variant_ids: Collection[int]) -> list[Row]:
    """Return the files of candidates: candidate, the input if it steered, then what a row says."""
    return tx.rows(
        f"SELECT a.variant_id, {_STEER}, {_ABOUT} FROM attachments a"
        f" LEFT JOIN inputs n ON n.id = a.input_id WHERE {among('a.variant_id', variant_ids)}"
        " ORDER BY a.id"
    )


#: Of a candidate that is shown, of a turn that is.
_SHOWN = (
    " JOIN variants v ON v.id = a.variant_id AND v.deleted_at IS NULL"
    " JOIN turns t ON t.id = v.turn_id AND t.deleted_at IS NULL"
)


def sent(tx: Tx, conversation_ids: Collection[int], public_id: str) -> Row | None:
    """Return type and bytes of a file that came with a turn of these conversations."""
    return tx.row(
        f"SELECT a.content_type, a.data FROM attachments a{_SHOWN}"
        f" WHERE a.public_id = :public_id AND {among('a.conversation_id', conversation_ids)}",
        public_id=public_id,
    )


def all_sent(tx: Tx, conversation_ids: Collection[int]) -> list[Row]:
    """Return public id and type of each file that came with a turn of these conversations."""
    return tx.rows(
        f"SELECT a.public_id, a.content_type FROM attachments a{_SHOWN}"
        f" WHERE {among('a.conversation_id', conversation_ids)} ORDER BY a.id"
    )


def asked_with(tx: Tx, variant_id: int) -> list[Row]:
    """Return the row ids of the files with which a candidate was asked."""
    return tx.rows(
        "SELECT a.id FROM attachments a LEFT JOIN inputs n ON n.id = a.input_id"
        f" WHERE a.variant_id = :id AND {_STEER} IS NULL ORDER BY a.id",
        id=variant_id,
    )


def copy(tx: Tx, row_id: int, variant_id: int, public_id: str) -> None:
    """Give a candidate a copy of a file."""
    tx.run(
        "INSERT INTO attachments (public_id, conversation_id, variant_id, filename, content_type,"
        " byte_size, data, created_at) SELECT CAST(:public_id AS TEXT), conversation_id,"
        " CAST(:variant_id AS BIGINT), filename, content_type, byte_size, data, created_at"
        " FROM attachments WHERE id = :id",
        public_id=public_id,
        variant_id=variant_id,
        id=row_id,
    )


def contents(tx: Tx, variant_ids: Collection[int]) -> list[Row]:
    """Return the files of candidates: candidate, name, type, bytes, and the input if it steered."""
    return tx.rows(
        f"SELECT a.variant_id, a.filename, a.content_type, a.data, {_STEER} FROM attachments a"
        f" LEFT JOIN inputs n ON n.id = a.input_id WHERE {among('a.variant_id', variant_ids)}"
        " ORDER BY a.id"
    )


def bind(tx: Tx, input_id: int, variant_id: int) -> None:
    """Give the files of an input to the candidate that it became, or steers."""
    tx.run(
        "UPDATE attachments SET variant_id = :variant_id WHERE input_id = :id",
        id=input_id,
        variant_id=variant_id,
    )
