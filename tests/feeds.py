"""Conversations with turns and feeds, made row by row as an engine would make them."""

from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.sessions import creation, messages, store_turns
from stenograph.sessions.creation import NewSession
from stenograph.sessions.messages import Message
from stenograph.storage.database import Database, Tx


@dataclass(frozen=True)
class Turn:
    """Row ids of a turn and of its candidate."""

    id: int
    variant_id: int


def new_session(database: Database, caller: Caller, **facts: object) -> int:
    """Make a session of this server, or with `agent` a recorded one; returns its row id."""
    return database.write(lambda tx: creation.create(tx, caller, NewSession(**facts)))


def ask(tx: Tx, caller: Caller, session_id: int, prompt: str) -> Turn:
    """Open a turn and write what was asked into the feed."""
    position = store_turns.take_position(tx, session_id)
    turn = Turn(
        *store_turns.insert_turn(
            tx,
            session_id,
            position,
            speaker_id=caller.principal_id,
            prompt=prompt,
            model=None,
            effort=None,
            at=1,
        )
    )
    kind = "message" if position else "prompt"
    messages.append(tx, session_id, Message(kind, "user", turn.id, turn.variant_id, created_at=1))
    return turn


def answer(tx: Tx, session_id: int, turn: Turn, text: str, status: str = "exit") -> int:
    """End a turn and write its reply; returns the reply's cursor."""
    tx.run(
        "UPDATE variants SET content = :text, status = 'completed' WHERE id = :id",
        text=text,
        id=turn.variant_id,
    )
    tx.run("UPDATE turns SET status = 'completed' WHERE id = :id", id=turn.id)
    reply = Message(
        "reply", "assistant", turn.id, turn.variant_id, status=status, outcome="success"
    )
    return messages.replace_reply(tx, session_id, reply)


def say(tx: Tx, caller: Caller, session_id: int, prompt: str, text: str) -> Turn:
    """Ask and answer."""
    turn = ask(tx, caller, session_id, prompt)
    answer(tx, session_id, turn, text)
    return turn


def notices(database: Database, session_id: int, count: int) -> None:
    """Write `count` messages of the agent's own, `n1`, `n2` and so on."""
    rows = [Message("message", "assistant", content=f"n{n}") for n in range(1, count + 1)]
    database.write(lambda tx: messages.append_all(tx, session_id, rows))


def fork(tx: Tx, caller: Caller, source: int, boundary: int) -> int:
    """Fork a session behind turn position `boundary`, as rows; returns the fork's row id."""
    made = creation.create(tx, caller, NewSession())
    tx.run(
        "INSERT INTO ancestries (conversation_id, depth, ancestor_id, boundary_position)"
        " SELECT :made, depth + 1, ancestor_id, boundary_position FROM ancestries"
        " WHERE conversation_id = :source UNION ALL SELECT :made, 1, :source, :boundary",
        made=made,
        source=source,
        boundary=boundary,
    )
    tx.run(
        "UPDATE conversations SET source_id = :source, next_position = :next WHERE id = :made",
        made=made,
        source=source,
        next=boundary + 1,
    )
    return made


def whole(tx: Tx, session_id: int) -> list[messages.Item]:
    """Read a feed to its end, a page of 200 at a time."""
    items: list[messages.Item] = []
    after = None
    while True:
        page = messages.page(tx, session_id, after, 200)
        items += page.items
        after = page.end_cursor
        if not page.has_next_page:
            return items
