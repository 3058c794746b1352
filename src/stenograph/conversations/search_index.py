"""The search index, kept in step with the record (docs/decisions/0042-search.md).

Triggers note every change, so that whoever writes cannot forget it; here what was noted becomes
documents, in the background. A search looks through the latest changes itself.
"""

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

import structlog

from stenograph.conversations import search_documents as documents
from stenograph.conversations import store_search_index as store
from stenograph.conversations.search_documents import Draft
from stenograph.storage import search
from stenograph.storage.database import Database, Tx

_log = structlog.get_logger()

#: Changes that are indexed in one transaction.
BATCH = 200
#: Seconds between two looks for changes, and how many times as long as it worked it then rests.
_PAUSE = 1.0
_REST = 9
#: Rows that the check compares at once.
_PAGE = 500
_writing = threading.Lock()


def catch_up_for(database: Database, workspace_id: int) -> None:
    """Index what was changed before this was called, if it is more than a search looks through."""
    with database.once() as tx:
        late = store.changed(tx, workspace_id, documents.LATE + 1)
    if len(late) > documents.LATE:
        catch_up(database)


def catch_up(database: Database, resting: threading.Event | None = None) -> None:
    """Index what was changed before this was called.

    With `resting` it works a tenth of the time, and stops when that is set.
    """
    with database.once() as tx:
        upto = store.last_change(tx)
    while upto is not None:
        began = time.monotonic()
        if not _batch(database, upto):
            return
        if resting is not None and resting.wait(_REST * (time.monotonic() - began)):
            return


@contextmanager
def upkeep(database: Database) -> Iterator[None]:
    """Index what changes a little later, as long as this is entered."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(_PAUSE):
            try:
                catch_up(database, stop)
            except Exception:
                _log.exception("indexing_failed")

    thread = threading.Thread(target=work, name="search-index", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def rebuild(database: Database) -> None:
    """Compare every document with the record, put right what differs, and index all anew."""
    database.write(store.note_all)
    catch_up(database)
    database.write(search.rebuild)


def _batch(database: Database, upto: int) -> bool:
    """Index the oldest changes. False: there are none."""
    with _writing:  # two that did the same would both do it in vain
        with database.read() as tx:
            changes = store.changes(tx, upto, BATCH)
            drafts = documents.wanted(
                tx, *documents.split((turn, owner) for _, turn, owner in changes)
            )
        if changes:
            database.write(partial(_write, ids=[row[0] for row in changes], drafts=drafts))
    return bool(changes)


def _write(tx: Tx, ids: Collection[int], drafts: list[Draft]) -> None:
    """Make the documents of changed things what they ought to be.

    A change that is not there any more was indexed meanwhile, from a reading at least as new.
    """
    live = set(store.take_changes(tx, ids))
    there = {(one.subject, one.field): one for one in documents.there(tx, *documents.split(live))}
    wanted = {(draft.subject, draft.field): draft for draft in drafts if draft.subject in live}
    same = {key for key, one in there.items() if key in wanted and one.agrees(wanted[key])}
    store.remove(tx, [one.id for key, one in there.items() if key not in same])
    fresh = [draft for key, draft in wanted.items() if key not in same]
    slots = documents.places(tx, there.values(), fresh)
    if fresh:
        store.insert(tx, [documents.row(draft, slots[draft.subject]) for draft in fresh])


def disagreements(tx: Tx) -> Iterator[tuple[str, int, str]]:
    """Return where index and record differ, apart from what waits to be indexed: table, row id
    (0: no single row), sentence."""
    for table in ("turns", "conversations"):
        after = 0
        while page := store.page_of(tx, table, after, _PAGE):
            after = page[-1]
            yield from _compared(tx, table, page)
    for document in store.orphans(tx):
        yield "search_documents", document, "What it is a document of is not there."
    for workspace, count in store.by_workspace(tx):
        if search.indexed(tx, documents.of_workspace(workspace)) != count:
            sentence = f"The search index has not all documents of workspace {workspace}."
            yield "search_documents", 0, sentence


def _compared(tx: Tx, table: str, page: list[int]) -> Iterator[tuple[str, int, str]]:
    scope = (page, []) if table == "turns" else ([], page)
    waiting = set(store.pending(tx, *scope))
    wanted = {(draft.subject, draft.field): draft for draft in documents.wanted(tx, *scope)}
    there = {(one.subject, one.field): one for one in documents.there(tx, *scope)}
    for key in sorted(wanted.keys() | there.keys(), key=str):
        subject, field = key
        if subject in waiting:
            continue
        if key not in there:
            name = documents.FIELDS[field]
            yield table, subject[0] or subject[1] or 0, f"Search does not know its {name}."
        elif key not in wanted or not there[key].agrees(wanted[key]):
            yield "search_documents", there[key].id, "It does not say what its turn shows."
