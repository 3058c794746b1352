"""Conversations with turns and feeds, made row by row as an engine would make them."""

from dataclasses import dataclass

from stenograph.accounts.access import Caller
from stenograph.conversations import store_forks, store_turns
from stenograph.conversations import turn as turns
from stenograph.conversations import variant as variants
from stenograph.sessions import creation, messages
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
    store_turns.set_active_turn(tx, session_id, None)  # a feed takes several at once, too
    opened = turns.open(
        tx, session_id, status="pending", speaker_id=caller.principal_id, announce=False
    )
    wanted = variants.add(tx, opened, source="run", status="pending", prompt=prompt, announce=False)
    kind = "message" if opened.position else "prompt"
    messages.append(tx, session_id, Message(kind, "user", opened.id, wanted.id, created_at=1))
    return Turn(opened.id, wanted.id)


def answer(tx: Tx, session_id: int, turn: Turn, text: str, status: str = "exit") -> int:
    """End a turn and write its reply; returns the reply's cursor."""
    tx.run(
        "UPDATE variants SET content = :text, status = 'completed' WHERE id = :id",
        text=text,
        id=turn.variant_id,
    )
    tx.run("UPDATE turns SET status = 'completed' WHERE id = :id", id=turn.id)
    store_turns.clear_active_turn(tx, session_id, turn.id)
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
    store_forks.add_ancestries(tx, made, source, boundary)
    store_forks.adopt(tx, made, source_id=source, next_position=boundary + 1)
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
