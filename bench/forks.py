"""Forks: what is shared is not copied, so its length does not matter."""

from bench.figures import Figure, median
from bench.histories import many_turns
from bench.serving import folder, record
from stenograph.conversations import access, fork, turn


def run() -> list[Figure]:
    """Measure the fork at the last turn of a short and of a long conversation, fsync included."""
    figures = []
    with folder() as data, record(data) as (database, owner):
        for n in (100, 10_000):
            talk = many_turns(database, owner, n // 2)
            with database.read() as tx:
                workspace = access.find_workspace(tx, owner, talk.workspace_id)
                source = access.find(tx, owner, talk.workspace_id, talk.conversation_id)
                (last,) = turn.window(tx, source, before=n // 2, limit=1)
            point = last.turn.public_id

            def act(source=source, workspace=workspace, point=point) -> None:  # type: ignore[no-untyped-def]
                database.write(lambda tx: fork.create(tx, owner, workspace, source, point))

            name = f"fork of a conversation of {n:,} messages"
            figures.append(Figure(name, median(act, 100), "ms", "under 5"))
    return figures
