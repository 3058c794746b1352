"""Searches as a test makes them, and what a plain scan of the record would find."""

from typing import Any

from stenograph.accounts.access import Caller
from stenograph.conversations import search, search_documents, search_index, words
from stenograph.conversations.access import Workspace
from stenograph.conversations.search import Masking, Match, Page
from stenograph.storage.database import Database, Tx

Found = tuple[str, str | None, str]


def nothing_masked(_: object) -> None:
    """No conversation has a secret."""


def look(
    database: Database,
    caller: Caller,
    workspace: Workspace,
    text: str,
    *,
    masking: Masking = nothing_masked,
    **options: Any,
) -> Page:
    """Search as a request does: what was written before it is found."""
    search_index.catch_up_for(database, workspace.id)
    with database.read() as tx:
        return search.find(tx, caller, workspace, text, masking=masking, **options)


def everything(
    database: Database, caller: Caller, workspace: Workspace, text: str, **options: Any
) -> list[Match]:
    """Read all pages."""
    found: list[Match] = []
    after = None
    while True:
        page = look(database, caller, workspace, text, after=after, **options)
        found += page.matches
        after = page.next_after
        if after is None:
            return found


def places(matches: list[Match]) -> list[Found]:
    """Return conversation, turn and field of each match."""
    return [(match.conversation, match.turn, match.field) for match in matches]


def scan(tx: Tx, principal_id: int, workspace_id: int, text: str) -> list[Found]:
    """Look through the whole record in plain Python, in the order of the contract.

    Main conversations that are not archived, as one principal sees them.
    """
    asked = words.query(text)
    if not asked.terms:
        return []
    found = []
    conversations = tx.rows(
        "SELECT id, public_id, title, creator_id, answerer_id, access_default FROM conversations"
        " WHERE workspace_id = :w AND deleted_at IS NULL AND archived_at IS NULL AND side = 0"
        " AND parent_id IS NULL",
        w=workspace_id,
    )
    named = dict(
        tx.rows(
            "SELECT conversation_id, level FROM conversation_access WHERE principal_id = :p",
            p=principal_id,
        )
    )
    for owner, public_id, title, creator, answerer, default in conversations:
        level = "full" if principal_id in (creator, answerer) else named.get(owner, default)
        if level == "none":
            continue
        if title and asked.first(title) is not None:
            found.append((search_documents.slot(public_id), public_id, None, "title"))
        bounds = dict(
            tx.rows(
                "SELECT ancestor_id, boundary_position FROM ancestries WHERE conversation_id = :c",
                c=owner,
            )
        )
        looks = {
            row[0]: row[1:]
            for row in tx.rows(
                "SELECT turn_id, visibility, deleted_at FROM turn_overrides"
                " WHERE conversation_id = :c",
                c=owner,
            )
        }
        for turn_id, turn, at, position, kind, visibility, deleted, active in tx.rows(
            "SELECT id, public_id, conversation_id, position, kind, visibility, deleted_at,"
            " active_variant_id FROM turns"
        ):
            if at != owner:
                if position > bounds.get(at, -1):
                    continue
                visibility, deleted = looks.get(turn_id, (None, None))
            if visibility == "hidden" or deleted is not None or kind == "compaction_summary":
                continue
            row = tx.row("SELECT prompt, content FROM variants WHERE id = :v", v=active)
            said = tx.rows(
                "SELECT text FROM steps WHERE variant_id = :v AND part = 'steer' ORDER BY id",
                v=active,
            )
            texts = {"steers": "\n\n".join(line for (line,) in said)}
            texts |= dict(zip(("prompt", "content"), row or (), strict=False))
            for field, body in texts.items():
                if body and asked.first(body) is not None:
                    found.append((search_documents.slot(turn), public_id, turn, field))
    found.sort(key=lambda one: (-one[0], one[1], one[3]))
    return [one[1:] for one in found]
