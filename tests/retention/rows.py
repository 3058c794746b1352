"""A small record made row by row, with a mark of its own in every text and blob.

A mark is a word that stands nowhere else, so that a search through files and tables tells which
column's bytes are still there.
"""

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stenograph.accounts.access import Caller
from stenograph.ids import new_id
from stenograph.storage.database import Tx

T0 = 1_700_000_000_000_000


@dataclass
class World:
    """Row ids by name, and which mark lies in which column: `table.column` or `table.column#n`."""

    ids: dict[str, int] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)

    def mark(self, place: str) -> str:
        text = f"m{uuid.uuid4().hex}"
        self.marks[place] = text
        return text

    def json(self, place: str) -> str:
        return json.dumps({"x": self.mark(place)})


def image(w: World) -> str:
    """What points at the image of the session."""
    source = {"media_type": "image/png", "path": w.marks["media.path"]}
    return msgspec.json.encode({"message": [{"type": "image", "source": source}]}).decode()


def insert(tx: Tx, table: str, **columns: Any) -> None:
    """Insert into a table without an `id` of its own."""
    tx.insert_many(table, list(columns), [tuple(columns.values())])


def build(tx: Tx, owner: Caller) -> World:
    """Make one imported session with a run-backed turn, a direct reply and a manual message."""
    w = World()
    w.ids["workspace"] = tx.insert(
        "workspaces",
        public_id=new_id(),
        organization_id=owner.organization_id,
        owner_id=owner.principal_id,
        creator_id=owner.principal_id,
        name="w",
        access_mode="account_wide",
        state="active",
        metadata="{}",
        lock_version=0,
        created_at=T0,
        updated_at=T0,
    )
    w.ids["conversation"] = conversation(tx, owner, w, "conversation")
    _session(tx, owner, w)
    _run_turn(tx, owner, w)
    _direct_turn(tx, w)
    _manual_turn(tx, w)
    _events(tx, w)
    return w


def conversation(tx: Tx, owner: Caller, w: World, name: str, **columns: Any) -> int:
    return tx.insert(
        "conversations",
        public_id=new_id(),
        workspace_id=w.ids["workspace"],
        creator_id=owner.principal_id,
        title=w.mark(f"conversations.title#{name}"),
        metadata=w.json(f"conversations.metadata#{name}"),
        access_default="full",
        last_activity_at=T0,
        created_at=T0,
        updated_at=T0,
        **columns,
    )


def _session(tx: Tx, owner: Caller, w: World) -> None:
    c = w.ids["conversation"]
    insert(
        tx,
        "sessions",
        conversation_id=c,
        organization_id=owner.organization_id,
        owner_id=owner.principal_id,
        mode="standard",
        status="exit",
        model="m",
        tags=json.dumps([w.mark("sessions.tags")]),
        options="{}",
        agent=json.dumps(
            {
                "name": w.mark("sessions.agent#name"),
                "version": "1",
                "tool_definitions": [w.mark("sessions.agent#tools")],
                "extra": {"b": w.mark("sessions.agent#extra")},
            }
        ),
        document=w.json("sessions.document"),
        created_at=T0,
    )
    w.ids["import"] = tx.insert(
        "imports",
        organization_id=owner.organization_id,
        conversation_id=c,
        format="atif",
        source_key=w.mark("imports.source_key"),
        steps=1,
        report="{}",
        imported_at=T0,
    )
    w.ids["original"] = tx.insert(
        "originals",
        import_id=w.ids["import"],
        name=w.mark("originals.name"),
        digest=w.mark("originals.digest").encode(),
        size=1,
        compressed=w.mark("originals.compressed").encode(),
    )
    w.ids["media"] = tx.insert(
        "media",
        conversation_id=c,
        path=w.mark("media.path"),
        media_type="image/png",
        data=w.mark("media.data").encode(),
    )


def turn(tx: Tx, w: World, name: str, position: int, c: str = "conversation", **more: Any) -> int:
    columns: dict[str, Any] = {"kind": "direct_reply", "role": "assistant", "status": "completed"}
    w.ids[name] = tx.insert(
        "turns",
        public_id=new_id(),
        conversation_id=w.ids[c],
        position=position,
        created_at=T0,
        completed_at=T0,
        **columns | more,
    )
    tx.run(
        "UPDATE conversations SET next_position = :next WHERE id = :id",
        id=w.ids[c],
        next=position + 1,
    )
    return w.ids[name]


def variant(tx: Tx, w: World, name: str, turn_id: int, source: str, **more: Any) -> int:
    w.ids[name] = tx.insert(
        "variants",
        public_id=new_id(),
        turn_id=turn_id,
        position=more.pop("position", 0),
        source=source,
        status=more.pop("status", "completed"),
        prompt=w.mark(f"variants.prompt#{name}"),
        content=w.mark(f"variants.content#{name}"),
        failure_reason=w.mark(f"variants.failure_reason#{name}"),
        created_at=T0,
        completed_at=T0,
        **more,
    )
    tx.run("UPDATE turns SET active_variant_id = :v WHERE id = :id", id=turn_id, v=w.ids[name])
    return w.ids[name]


def details(tx: Tx, w: World, name: str) -> None:
    columns = ("preface", "reasoning", "reasoning_trace", "reference")
    values = {c: w.mark(f"variant_details.{c}#{name}") for c in columns}
    insert(tx, "variant_details", variant_id=w.ids[name], **values)


def invocation(tx: Tx, w: World, name: str, **owner: int) -> int:
    w.ids[name] = tx.insert(
        "invocations",
        status="completed",
        provider_id=w.mark(f"invocations.provider_id#{name}"),
        model_ref=w.mark(f"invocations.model_ref#{name}"),
        started_at=T0,
        terminal_at=T0,
        created_at=T0,
        **owner,
    )
    columns = ("message", "reasoning", "reasoning_trace", "request", "response")
    insert(
        tx,
        "invocation_details",
        invocation_id=w.ids[name],
        rest=w.json(f"invocation_details.rest#{name}"),
        **{c: w.mark(f"invocation_details.{c}#{name}") for c in columns},
    )
    return w.ids[name]


def receipt(tx: Tx, w: World, name: str, c: str = "conversation", **owner: int) -> None:
    w.ids[f"receipt of {name}"] = tx.insert(
        "usage_receipts",
        conversation_id=w.ids[c],
        invocation_id=w.ids[name],
        model_ref=w.mark(f"usage_receipts.model_ref#{name}"),
        prompt_tokens=3,
        completion_tokens=2,
        cost_usd=0.5,
        occurred_at=T0,
        **owner,
    )


def run(tx: Tx, w: World, name: str, variant_id: int, c: str = "conversation", **more: Any) -> int:
    values: dict[str, Any] = {"status": "completed", "completed_at": T0, "next_round": 2} | more
    w.ids[name] = tx.insert(
        "runs",
        public_id=new_id(),
        workspace_id=w.ids["workspace"],
        conversation_id=w.ids[c],
        variant_id=variant_id,
        approval_mode="bypass",
        failure_reason=w.mark(f"runs.failure_reason#{name}"),
        created_at=T0,
        updated_at=T0,
        **values,
    )
    return w.ids[name]


def task(tx: Tx, w: World, name: str, run_id: int, key: str, kind: str, **more: Any) -> int:
    w.ids[name] = tx.insert(
        "tasks",
        run_id=run_id,
        key=key,
        kind=kind,
        status="completed",
        transcript_visibility="visible",
        tool_call_id=w.mark(f"tasks.tool_call_id#{name}"),
        name=w.mark(f"tasks.name#{name}"),
        error=w.mark(f"tasks.error#{name}"),
        created_at=T0,
        **more,
    )
    insert(
        tx,
        "task_details",
        task_id=w.ids[name],
        input=w.json(f"task_details.input#{name}"),
        output=w.mark(f"task_details.output#{name}"),
        rest=w.json(f"task_details.rest#{name}"),
    )
    return w.ids[name]


def step(tx: Tx, w: World, name: str, part: str, **more: Any) -> int:
    c = w.ids["conversation"]
    position = tx.value(
        "UPDATE conversations SET next_step = next_step + 1 WHERE id = :id RETURNING next_step - 1",
        id=c,
    )
    source = {"agent": "agent", "system": "system"}.get(part, "user")
    w.ids[name] = tx.insert(
        "steps",
        conversation_id=c,
        position=position,
        part=part,
        source=source,
        external_key=w.mark(f"steps.external_key#{name}"),
        digest=w.mark(f"steps.digest#{name}").encode(),
        text=w.mark(f"steps.text#{name}"),
        rest=w.json(f"steps.rest#{name}"),
        **more,
    )
    return w.ids[name]


def _run_turn(tx: Tx, owner: Caller, w: World) -> None:
    c = w.ids["conversation"]
    step(tx, w, "loose", "system")
    w.ids["input"] = tx.insert(
        "inputs",
        public_id=new_id(),
        conversation_id=c,
        state="consumed",
        kind="direct_reply",
        role="user",
        origin="person",
        sender_id=owner.principal_id,
        text=w.mark("inputs.text"),
        options=w.json("inputs.options"),
        created_at=T0,
    )
    t = turn(tx, w, "turn", 0, input_id=w.ids["input"])
    tx.run("UPDATE inputs SET turn_id = :t WHERE id = :id", id=w.ids["input"], t=t)
    v = variant(tx, w, "ran", t, "run")
    details(tx, w, "ran")
    r = run(tx, w, "run", v)
    k = task(tx, w, "round", r, "r1", "model_task")
    invocation(tx, w, "superseded", task_id=k)
    i = invocation(tx, w, "selected", task_id=k)
    tx.run("UPDATE tasks SET selected_invocation_id = :i WHERE id = :id", id=k, i=i)
    receipt(tx, w, "selected", run_id=r, variant_id=v)
    receipt(tx, w, "superseded", run_id=r, variant_id=v)
    task(tx, w, "call", r, "r2t0", "tool_task", parent_id=k, round_id=k, call_index=0)
    at = {"turn_id": t, "variant_id": v}
    _of_the_engine(tx, owner, w, v)
    step(tx, w, "prompt", "prompt", **at)
    step(tx, w, "agent", "agent", task_id=k, **at)
    step(tx, w, "steer", "steer", **at)
    step(tx, w, "injected", "system", **at)
    tx.run(
        "UPDATE steps SET rest = :rest WHERE id = :id",
        id=w.ids["agent"],
        rest=image(w),
    )
    del w.marks["steps.rest#agent"]
    for cursor, name in enumerate(("prompt", "steer"), 1):
        tx.insert(
            "messages",
            public_id=new_id(),
            conversation_id=c,
            cursor=cursor,
            kind="message",
            role="user",
            turn_id=t,
            step_id=w.ids[name],
            content=w.mark(f"messages.content#{name}"),
            attachments=json.dumps([w.mark(f"messages.attachments#{name}")]),
        )
    tx.run("UPDATE conversations SET next_cursor = 3 WHERE id = :id", id=c)
    reply(tx, w, "turn")


def _of_the_engine(tx: Tx, owner: Caller, w: World, variant_id: int) -> None:
    """What is there of a run of this server's besides: a worker's call that was asked about, the
    tools that were offered, a file that came with the question."""
    c = w.ids["conversation"]
    w.ids["dispatch"] = tx.insert(
        "dispatches",
        public_id=new_id(),
        organization_id=owner.organization_id,
        conversation_id=c,
        task_id=w.ids["call"],
        machine=w.mark("dispatches.machine"),
        status="completed",
        claim=w.mark("dispatches.claim"),
        settlement_digest=w.mark("dispatches.settlement_digest").encode(),
        created_at=T0,
        claimed_at=T0,
        settled_at=T0,
    )
    insert(
        tx,
        "approvals",
        task_id=w.ids["call"],
        decision="approve",
        decider_id=owner.principal_id,
        note=w.mark("approvals.note"),
        requested_at=T0,
        decided_at=T0,
    )
    w.ids["tools"] = tx.insert(
        "tool_sets",
        conversation_id=c,
        digest=w.mark("tool_sets.digest").encode(),
        definitions=w.json("tool_sets.definitions"),
    )
    w.ids["attachment"] = tx.insert(
        "attachments",
        public_id=new_id(),
        conversation_id=c,
        input_id=w.ids["input"],
        variant_id=variant_id,
        filename=w.mark("attachments.filename"),
        content_type="text/plain",
        byte_size=33,
        data=w.mark("attachments.data").encode(),
        created_at=T0,
    )


def reply(tx: Tx, w: World, turn_name: str) -> None:
    c = w.ids["conversation"]
    cursor = tx.value(
        "UPDATE conversations SET next_cursor = next_cursor + 1 WHERE id = :id"
        " RETURNING next_cursor - 1",
        id=c,
    )
    w.ids[f"reply of {turn_name}"] = tx.insert(
        "messages",
        public_id=new_id(),
        conversation_id=c,
        cursor=cursor,
        kind="reply",
        role="assistant",
        turn_id=w.ids[turn_name],
    )


def _direct_turn(tx: Tx, w: World) -> None:
    v = variant(tx, w, "direct", turn(tx, w, "direct turn", 1), "inference")
    details(tx, w, "direct")
    i = invocation(tx, w, "direct call", variant_id=v)
    tx.run("UPDATE variants SET invocation_id = :i WHERE id = :id", id=v, i=i)
    receipt(tx, w, "direct call", variant_id=v)
    reply(tx, w, "direct turn")


def _manual_turn(tx: Tx, w: World) -> None:
    t = turn(tx, w, "manual turn", 2, kind="message", role="user")
    variant(tx, w, "manual", t, "manual")


def _events(tx: Tx, w: World) -> None:
    c = w.ids["conversation"]
    for sequence, name in enumerate(("round", "call"), 1):
        tx.insert(
            "events",
            public_id=new_id(),
            conversation_id=c,
            sequence=sequence,
            type="task_status",
            turn_id=w.ids["turn"],
            variant_id=w.ids["ran"],
            run_id=w.ids["run"],
            task_id=w.ids[name],
            payload=w.json(f"events.payload#{name}"),
            occurred_at=T0,
        )
    tx.run("UPDATE conversations SET next_sequence = 3 WHERE id = :id", id=c)


#: The marks that pruning takes away; every other one must stay.
def expires(place: str) -> bool:
    """Tell whether retention deletes what lies in a place (agent-api.md 6, decision 0020)."""
    column, _, name = place.partition("#")
    table = column.partition(".")[0]
    if column == "steps.text":
        return name in ("agent", "loose", "injected")
    if column == "steps.digest":
        return name in ("agent", "loose", "injected")
    if table == "variant_details":
        return column != "variant_details.reference"
    if column == "sessions.agent":
        return name != "name"
    whole = ("tasks", "task_details", "invocations", "invocation_details", "media", "dispatches",
             "approvals", "tool_sets")  # fmt: skip
    return table in whole or (column in ("steps.rest", "originals.compressed", "sessions.document"))
