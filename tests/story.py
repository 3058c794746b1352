"""Conversations told through the domain's own verbs: messages, direct replies, runs with rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stenograph.accounts.access import Caller
from stenograph.conversations import conversation, fork, turn, variant, workspace
from stenograph.conversations import input as inputs
from stenograph.conversations.access import Conversation, Workspace
from stenograph.conversations.turn import Turn
from stenograph.conversations.variant import Model, Variant
from stenograph.runs import invocation, run, task
from stenograph.runs.invocation import Usage
from stenograph.runs.run import Run
from stenograph.runs.task import Call, Task
from stenograph.storage.database import Database, Tx

THINKER = Model("dev", "thinker", True, "low")
SMALL = Model("dev", "small")


@dataclass(frozen=True)
class Said:
    """A turn with one candidate, and the run behind it."""

    turn: Turn
    variant: Variant
    run: Run | None = None


@dataclass(frozen=True)
class Place:
    """A conversation in a workspace, and who tells the story."""

    caller: Caller
    workspace: Workspace
    conversation: Conversation

    @property
    def path(self) -> str:
        """Its path in the Agent API."""
        return (
            f"/agent_api/v1/workspaces/{self.workspace.public_id}"
            f"/conversations/{self.conversation.public_id}"
        )

    def turn(self, said: Said | Turn) -> str:
        found = said.turn if isinstance(said, Said) else said
        return f"{self.path}/turns/{found.public_id}"

    def variant(self, said: Said) -> str:
        return f"{self.turn(said)}/variants/{said.variant.public_id}"

    def reasoning(self, said: Said) -> str:
        return f"{self.variant(said)}/reasoning"

    def run(self, said: Said) -> str:
        assert said.run is not None
        return f"/agent_api/v1/workspaces/{self.workspace.public_id}/runs/{said.run.public_id}"


def place(database: Database, caller: Caller, **options: Any) -> Place:
    """Make a workspace that the whole organization sees, with a conversation."""

    def make(tx: Tx) -> Place:
        home = workspace.create(tx, caller, "Home", access_mode="account_wide")
        return Place(caller, home, conversation.create(tx, caller, home, **options))

    return database.write(make)


def another(database: Database, where: Place, **options: Any) -> Place:
    """Make a second conversation in the same workspace."""

    def make(tx: Tx) -> Place:
        made = conversation.create(tx, where.caller, where.workspace, **options)
        return Place(where.caller, where.workspace, made)

    return database.write(make)


def message(database: Database, where: Place, text: str = "Hello") -> Said:
    """Say something; it becomes a completed turn."""

    def make(tx: Tx) -> Said:
        sent = inputs.accept(tx, where.caller, where.conversation, kind="message", text=text)
        made = inputs.materialization(tx, where.conversation, sent.public_id)
        found = turn.find(tx, where.conversation, made.turn)
        return Said(found, variant.find(tx, found, made.variant))

    return database.write(make)


def direct_reply(
    database: Database,
    where: Place,
    *,
    reasoning: str | None = "I add the numbers.",
    settled: bool = True,
    model: Model = THINKER,
) -> Said:
    """Answer by one model call; unsettled: the call has ended and nobody adopted its answer."""

    def make(tx: Tx) -> Said:
        opened = turn.open(tx, where.conversation.id)
        answer = variant.add(tx, opened, source="inference", prompt="2 + 2?", model=model)
        call = invocation.attach(tx, opened, answer)
        trace = '{"signature":"c2VjcmV0"}'
        invocation.seal(tx, call, [{"role": "user", "content": "2 + 2?"}], {"temperature": 0})
        invocation.settle(
            tx,
            call,
            message="4",
            reasoning=reasoning,
            reasoning_trace=trace,
            response='{"raw":"provider response"}',
            usage=Usage(prompt_tokens=100, completion_tokens=10, cached_tokens=40, cost_usd=0.25),
        )
        if settled:
            variant.settle(
                tx, opened, answer, "completed", content="4", reasoning=reasoning,
                reasoning_trace=trace,
            )  # fmt: skip
        opened = turn.find(tx, where.conversation, opened.public_id)
        return Said(opened, variant.find(tx, opened, answer.public_id))

    return database.write(make)


def open_run(tx: Tx, where: Place, *, source: str = "run", prompt: str = "Look around.") -> Said:
    """Open a turn that a run answers."""
    opened = turn.open(tx, where.conversation.id)
    answer = variant.add(tx, opened, source=source, prompt=prompt)  # type: ignore[arg-type]
    opened = turn.find(tx, where.conversation, opened.public_id)
    return Said(opened, answer, run.open(tx, opened, answer))


def think(
    tx: Tx,
    said: Said,
    of: Task,
    reasoning: str | None,
    *,
    message: str = "Done.",
    model: Model = THINKER,
    status: str = "completed",
) -> None:
    """Ask a model for a round, and settle both."""
    assert said.run is not None
    call = invocation.select(tx, said.run, of, model)
    invocation.seal(tx, call, [{"role": "user", "content": f"for {of.key}"}], {})
    invocation.settle(
        tx,
        call,
        status,  # type: ignore[arg-type]
        message=message,
        reasoning=reasoning,
        reasoning_trace='{"encrypted":"c2VjcmV0"}',
        response='{"raw":"provider response"}',
        usage=Usage(prompt_tokens=50, completion_tokens=5, cost_usd=0.01),
    )
    task.settle(tx, said.run, of, status)  # type: ignore[arg-type]


def finish(tx: Tx, said: Said, content: str = "Two files.") -> Said:
    """End a run and its candidate well."""
    assert said.run is not None
    ended = run.move(tx, said.run, "completed")
    variant.settle(tx, said.turn, said.variant, "completed", content=content)
    return Said(said.turn, said.variant, ended)


def rounds(database: Database, where: Place, texts: Sequence[str | None]) -> Said:
    """Answer by a run of as many rounds as there are texts, each with one call but the last."""

    def make(tx: Tx) -> Said:
        said = open_run(tx, where)
        assert said.run is not None
        after: list[Task] = []
        for n, text in enumerate(texts):
            current = task.add_round(tx, said.run, after=after)
            think(tx, said, current, text)
            if n + 1 < len(texts):
                after = task.add_calls(tx, said.run, current, [Call("ls", "{}", f"call_{n}")])
                task.settle(tx, said.run, after[0], output="README.md")
        return finish(tx, said)

    return database.write(make)


def branched(database: Database, where: Place) -> Said:
    """A run with every kind of task that the reasoning page tells apart.

    In order of making: `r1` (text, after a superseded call), its calls `r2t0` and `r2t1`, the
    branch's round `r2t0-model-1` (small model, blank text), a hidden round, the unstarted round
    `r2`, and `r3`, which failed and left nothing.
    """

    def make(tx: Tx) -> Said:
        said = open_run(tx, where)
        assert said.run is not None
        first = task.add_round(tx, said.run)
        think(tx, said, first, "superseded thought", message="superseded message")
        think(tx, said, first, "First I list the files.", message="I look.")
        calls = task.add_calls(
            tx,
            said.run,
            first,
            [
                Call("delegate_task", '{"to":"helper"}', "call_a"),
                Call("ls", '{"path":"/tmp"}', "call_b"),
                Call("ask", "{}", "call_c", kind="await_task"),
            ],
        )
        branch = task.add_round(tx, said.run, branch=calls[0], key="r2t0-model-1")
        think(tx, said, branch, "  \n", message="From the branch.", model=SMALL)
        task.settle(tx, said.run, calls[0], output="helped")
        task.settle(tx, said.run, calls[1], output="a\nb")
        hidden = task.add_round(tx, said.run, key="internal-1", visibility="hidden")
        think(tx, said, hidden, "hidden thought")
        task.add_round(tx, said.run, after=calls)
        failed = task.add_round(tx, said.run, key="r3", visibility="collapsed")
        think(tx, said, failed, "never kept", status="failed")
        return Said(said.turn, said.variant, said.run)

    return database.write(make)


def forked(database: Database, where: Place, at: Said | Turn, **options: Any) -> Place:
    """Fork a conversation at a turn."""
    point = at.turn if isinstance(at, Said) else at

    def make(tx: Tx) -> Place:
        made = fork.create(
            tx, where.caller, where.workspace, where.conversation, point.public_id, **options
        )
        return Place(where.caller, where.workspace, made)

    return database.write(make)


def run_sql(database: Database, sql: str, **params: Any) -> None:
    """Write what has no verb yet: archives, tombstones, markers of retention."""
    database.write(lambda tx: tx.run(sql, **params))


def archive(database: Database, where: Place) -> None:
    run_sql(
        database,
        "UPDATE conversations SET archived_at = 1 WHERE id = :id",
        id=where.conversation.id,
    )


def tombstone(database: Database, where: Place) -> None:
    run_sql(
        database,
        "UPDATE conversations SET deleted_at = 1 WHERE id = :id",
        id=where.conversation.id,
    )
