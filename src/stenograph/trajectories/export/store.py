"""The SQL of what leaves: the steps of a session in order, with their calls and usage."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import Struct

from stenograph.conversations import store_attachments
from stenograph.conversations.attachment import Attachment
from stenograph.conversations.store_turns import scopes
from stenograph.storage.database import Row, Tx, among
from stenograph.trajectories.export import attachments

#: Steps read at once; with their calls they are what an export holds in memory.
CHUNK = 200


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What the head and the foot of a document say; `agent`, `document` and `tools`, which a model
    of this server was offered last, are JSON."""

    conversation_id: int
    public_id: str
    mode: str
    status: str
    recorded: bool
    agent: str | None
    document: str | None
    document_session_id: str | None
    document_trajectory_id: str | None
    model: str | None
    tools: str | None

    @property
    def runs_here(self) -> bool:
        """Whether this server's engine ran it, rather than an agent elsewhere."""
        return self.agent is None


def facts(tx: Tx, conversation_id: int) -> SessionFacts | None:
    """Return the facts of a session; None for a conversation that is none."""
    row = tx.row(
        "SELECT c.id, c.public_id, s.mode, s.status, s.recorded, s.agent, s.document,"
        " s.document_session_id, s.document_trajectory_id, s.model,"
        " (SELECT o.definitions FROM tool_sets o WHERE o.conversation_id = c.id"
        "  ORDER BY o.id DESC LIMIT 1)"
        " FROM conversations c JOIN sessions s ON s.conversation_id = c.id WHERE c.id = :id",
        id=conversation_id,
    )
    return None if row is None else SessionFacts(*row)


def tree(tx: Tx, conversation_id: int) -> dict[int, list[int]]:
    """Return the children of a session and of all below it, by parent, in order of making."""
    found: dict[int, list[int]] = {}
    for parent, child in tx.rows(
        "WITH RECURSIVE below (id) AS (SELECT CAST(:id AS BIGINT) UNION"
        "  SELECT s.conversation_id FROM sessions s"
        "  JOIN below ON s.parent_conversation_id = below.id)"
        " SELECT s.parent_conversation_id, s.conversation_id FROM sessions s"
        " JOIN below ON s.parent_conversation_id = below.id"
        " JOIN conversations c ON c.id = s.conversation_id"
        " WHERE c.deleted_at IS NULL ORDER BY s.conversation_id",
        id=conversation_id,
    ):
        found.setdefault(parent, []).append(child)
    return found


def shown(tx: Tx, conversation_id: int) -> list[int]:
    """Return every conversation of which a document shows steps: the session itself first, those
    below it, and what each was forked from."""
    children = tree(tx, conversation_id)
    own = [conversation_id, *(child for found in children.values() for child in found)]
    above = tx.rows(
        f"SELECT DISTINCT ancestor_id FROM ancestries WHERE {among('conversation_id', own)}"
        " ORDER BY ancestor_id"
    )
    return [*own, *(row[0] for row in above if row[0] not in own)]


def has_audio(tx: Tx, conversation_ids: list[int]) -> bool:
    """Tell whether any of these sessions holds audio (an ATIF 1.8 feature)."""
    return bool(
        tx.value(
            "SELECT 1 FROM sessions WHERE audio = 1"
            f" AND {among('conversation_id', conversation_ids)}"
            " LIMIT 1"
        )
    )


def segments(tx: Tx, conversation_id: int) -> list[tuple[int, int | None]]:
    """Return the conversations whose steps a session shows, oldest ancestor first.

    With each, the position of the last turn that is inherited from it; None for the session itself.
    """
    return [*scopes(tx, conversation_id), (conversation_id, None)]


# A model call has its place before it has its answer; a direct reply's hangs on the candidate.
_STEPS = """
SELECT s.position, s.part, s.source, s.turn_id, s.variant_id, s.task_id, s.occurred_at, s.text,
  s.rest, d.message, d.reasoning, d.rest, i.model_ref, i.reasoning_effort, i.llm_call_count,
  u.id, u.prompt_tokens, u.completion_tokens, u.cached_tokens, u.cost_usd
FROM steps s
LEFT JOIN tasks k ON k.id = s.task_id
LEFT JOIN variants v ON v.id = s.variant_id AND s.part = 'agent' AND s.task_id IS NULL
LEFT JOIN invocations i ON i.id = coalesce(k.selected_invocation_id, v.invocation_id)
LEFT JOIN invocation_details d ON d.invocation_id = i.id
LEFT JOIN usage_receipts u ON u.invocation_id = i.id
WHERE s.conversation_id = :id AND s.position > :after
  AND (s.part <> 'agent' OR i.status = 'completed'
    OR (s.task_id IS NULL AND v.invocation_id IS NULL
      AND (v.source <> 'inference' OR v.details_pruned_at IS NOT NULL)))
ORDER BY s.position LIMIT :limit
"""


class StepRow(Struct, gc=False):
    """A step as it lies in the record."""

    position: int
    part: str
    source: str
    turn_id: int | None
    variant_id: int | None
    task_id: int | None
    occurred_at: int | None
    text: str | None
    rest: str | None
    message: str | None
    reasoning: str | None
    invocation_rest: str | None
    model: str | None
    effort: str | None
    llm_call_count: int | None
    receipt_id: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class TurnRow:
    """What a turn says of its steps: which candidate is shown, its prompt and answer, and, once its
    detail is gone, the place of the last of its steps that a model took."""

    id: int
    variant_id: int | None
    position: int
    concealed_at: int | None
    prompt: str | None
    content: str | None
    pruned_at: int | None
    last_step: int | None


@dataclass(slots=True)
class Chunk:
    """Steps that are shown, with their turns, the calls of each round as (round, call id, name,
    input, output, rest), and the files of candidates by row id and, for those that steered, the
    public id of the input."""

    steps: list[StepRow]
    turns: dict[int, TurnRow]
    calls: dict[int, list[Row]]
    files: dict[tuple[int, str | None], list[Attachment]]


def steps(tx: Tx, viewer: int, conversation_id: int, boundary: int | None) -> Iterator[Chunk]:
    """Return what a session shows of a conversation, in order.

    `viewer` is the session that is read: a fork hides what it concealed itself, whatever its
    source did, and nothing behind turn position `boundary` is its own.
    """
    after = -1
    last = 2**62 if boundary is None else boundary
    while True:
        rows = [
            StepRow(*row) for row in tx.rows(_STEPS, id=conversation_id, after=after, limit=CHUNK)
        ]
        if not rows:
            return
        after = rows[-1].position
        turns = _turns(tx, viewer, {row.turn_id for row in rows if row.turn_id is not None})
        shown = [row for row in rows if _is_shown(row, turns, last)]
        calls = _calls(tx, [r.task_id for r in shown if r.task_id is not None])
        yield Chunk(shown, turns, calls, _files(tx, shown))
        if len(rows) < CHUNK:
            return


def _is_shown(row: StepRow, turns: dict[int, TurnRow], last: int) -> bool:
    if row.turn_id is None:
        return True
    turn = turns[row.turn_id]
    return turn.variant_id == row.variant_id and turn.concealed_at is None and turn.position <= last


def _turns(tx: Tx, viewer: int, turn_ids: set[int]) -> dict[int, TurnRow]:
    return {
        row[0]: TurnRow(*row)
        for row in tx.rows(
            "SELECT t.id, t.active_variant_id, t.position,"
            " CASE WHEN t.conversation_id = :viewer THEN t.deleted_at ELSE o.deleted_at END,"
            " v.prompt, v.content, coalesce(r.details_pruned_at, v.details_pruned_at),"
            " CASE WHEN r.details_pruned_at IS NOT NULL OR v.details_pruned_at IS NOT NULL THEN"
            "  (SELECT max(s.position) FROM steps s WHERE s.variant_id = v.id"
            "   AND s.part IN ('agent', 'system')) END"
            " FROM turns t LEFT JOIN variants v ON v.id = t.active_variant_id"
            " LEFT JOIN runs r ON r.variant_id = t.active_variant_id"
            " LEFT JOIN turn_overrides o ON o.turn_id = t.id AND o.conversation_id = :viewer"
            f" WHERE {among('t.id', turn_ids)}",
            viewer=viewer,
        )
    }


def _calls(tx: Tx, round_ids: list[int]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for call in tx.rows(
        "SELECT k.round_id, k.tool_call_id, k.name, d.input, d.output, d.rest"
        " FROM tasks k LEFT JOIN task_details d ON d.task_id = k.id"
        f" WHERE {among('k.round_id', round_ids)} ORDER BY k.round_id, k.call_index"
    ):
        found.setdefault(call[0], []).append(call)
    return found


def _files(tx: Tx, shown: list[StepRow]) -> dict[tuple[int, str | None], list[Attachment]]:
    said = {row.variant_id for row in shown if row.part != "agent" and row.variant_id is not None}
    found: dict[tuple[int, str | None], list[Attachment]] = {}
    for variant_id, steer, *about in store_attachments.listed(tx, said) if said else ():
        found.setdefault((variant_id, steer), []).append(Attachment(*about))
    return found


def prompts_without_steps(tx: Tx, conversation_id: int) -> list[tuple[str, int]]:
    """Return text and time of prompts that wait for an agent, in order."""
    return [
        (row[0], row[1])
        for row in tx.rows(
            "SELECT v.prompt, t.created_at FROM turns t"
            " JOIN variants v ON v.id = t.active_variant_id"
            " WHERE t.conversation_id = :id AND v.prompt IS NOT NULL AND t.deleted_at IS NULL"
            " AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.turn_id = t.id) ORDER BY t.position",
            id=conversation_id,
        )
    ]


def media(tx: Tx, conversation_ids: list[int], path: str) -> tuple[str, bytes] | None:
    """Return type and bytes of a file that steps of these sessions point at."""
    row = tx.row(
        "SELECT media_type, data FROM media WHERE path = :path"
        f" AND {among('conversation_id', conversation_ids)} ORDER BY id LIMIT 1",
        path=path,
    )
    if row is None:
        named = attachments.public_id(path)
        row = store_attachments.sent(tx, conversation_ids, named)
        if row is not None and path != attachments.path(named, row[0]):
            row = None
    return None if row is None else (row[0], bytes(row[1]))


def media_paths(tx: Tx, conversation_ids: list[int]) -> list[str]:
    """Return the path of every file that these sessions' steps point at, each once."""
    found = tx.rows(
        f"SELECT path FROM media WHERE {among('conversation_id', conversation_ids)} ORDER BY id"
    )
    sent = store_attachments.all_sent(tx, conversation_ids)
    paths = [*(row[0] for row in found), *(attachments.path(*row) for row in sent)]
    return list(dict.fromkeys(filter(None, paths)))
