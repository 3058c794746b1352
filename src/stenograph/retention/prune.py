"""Deleting execution detail that has expired (agent-api.md 6).

Each candidate ages alone and goes in a transaction of its own, looked at again under the lock of
its conversation. So a prune may be stopped anywhere and started again, and whoever writes
meanwhile waits for one candidate at most.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import msgspec

from stenograph.clock import DAY, now
from stenograph.conversations import store as conversations
from stenograph.errors import InvalidInputError
from stenograph.retention import store
from stenograph.retention import store_holds as holds
from stenograph.retention.reap import TOUCHED, reap
from stenograph.retention.store import Due, Organization
from stenograph.sessions.conversing import steer_rest
from stenograph.storage.database import Database, Tx

#: Told after each candidate how many have gone.
Progress: TypeAlias = Callable[[int], None]

#: Later than every import.
_ALL = 2**62

_KEPT_OF_AGENT = ("name", "version", "model_name")


@dataclass(frozen=True, slots=True)
class _Age:
    """How old the details of an organization must be at a moment: by its policy, or as asked."""

    organization_id: int
    asked: int | None
    at: int

    def cutoff(self, tx: Tx) -> int | None:
        """Return by when work must have ended. None: the policy is off.

        Each candidate asks anew, so that who raises the policy, or turns it off, stops a prune.
        """
        days = store.policy(tx, self.organization_id) if self.asked is None else self.asked
        return None if days is None else self.at - days * DAY

    def imported(self, cutoff: int) -> int:
        """Return by when a log must have been imported."""
        return cutoff if self.asked is None else _ALL


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What went. `skipped` are candidates old enough that something still holds.

    `days` is the age that was asked for; None: the policy is off and nothing was looked at.
    """

    organization: str
    days: int | None
    runs: int = 0
    direct_replies: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Pruned:
    """A whole prune. `erased`: the deleted bytes are gone from the files as well; `reaped`: how
    many conversations went that had been deleted."""

    reports: list[PruneReport]
    erased: bool
    reaped: int = 0


def prune(
    database: Database,
    older_than_days: int | None = None,
    *,
    organization: str | None = None,
    rewrite: bool | None = True,
    progress: Progress | None = None,
) -> Pruned:
    """Prune every organization by its own policy, or those details that are `older_than_days`.

    Conversations that were deleted long enough ago are destroyed first (`reap`), everywhere.

    An age that is asked for counts from the end of the work; by policy, the details of an imported
    log age from its import where that was later.

    `organization`: a slug, to prune only that one. `rewrite`: write what is left anew, so that
    no scrap of what was deleted stays in any file (docs/decisions/0022 says what that costs);
    None: if anything went.
    """
    if older_than_days is not None and older_than_days < 0:
        raise InvalidInputError("The age must be 0 days or more")
    with database.read() as tx:
        found = [o for o in store.organizations(tx) if organization in (None, o.slug)]
    if organization is not None and not found:
        raise InvalidInputError(f"There is no organization {organization}")
    reaped = reap(database, progress)
    more = reaped.conversations > 0 or reaped.pieces > 0
    reports = [_organization(database, o, older_than_days, progress) for o in found]
    if rewrite is None:
        rewrite = more or any(report.runs or report.direct_replies for report in reports)
    touched = dict.fromkeys((*store.TOUCHED, *(TOUCHED if more else ())))
    # Also when nothing went: a prune that was killed has left bytes in the log.
    erased = database.scrub(tuple(touched) if rewrite else ())
    return Pruned(reports, erased, reaped.conversations)


def _organization(
    database: Database,
    organization: Organization,
    older_than: int | None,
    progress: Progress | None,
) -> PruneReport:
    days = organization.days if older_than is None else older_than
    if days is None:
        return PruneReport(organization.slug, None)
    age = _Age(organization.id, older_than, now())
    with database.read() as tx:
        workspaces = store.workspaces(tx, organization.id)
    gone = {_run: 0, _reply: 0}
    skipped = 0
    for workspace_id in workspaces:
        for due, act in ((store.due_runs, _run), (store.due_replies, _reply)):
            for one in _each(database, due, workspace_id, age):
                if database.write(partial(act, due=one, age=age)):
                    gone[act] += 1
                else:
                    skipped += 1
                if progress:
                    progress(sum(gone.values()))
    return PruneReport(organization.slug, days, gone[_run], gone[_reply], skipped)


def _each(
    database: Database,
    due: Callable[[Tx, int, int, tuple[int, int]], list[Due]],
    workspace_id: int,
    age: _Age,
) -> Iterator[Due]:
    """Yield the candidates of a workspace, page by page behind a cursor."""
    after = (-(2**62), 0)
    while True:
        with database.read() as tx:
            cutoff = age.cutoff(tx)
            page = [] if cutoff is None else due(tx, workspace_id, cutoff, after)
        if not page:
            return
        yield from page
        after = (page[-1].at, page[-1].id)


def _run(tx: Tx, due: Due, age: _Age) -> bool:
    conversations.lock(tx, due.conversation_id)
    cutoff = age.cutoff(tx)
    if cutoff is None:
        return False
    variant_id = holds.run_may_go(tx, due.id, cutoff, age.imported(cutoff))
    if variant_id is None:
        return False
    store.remove_tasks(tx, due.id)
    store.mark_run(tx, due.id, now())
    _shared(tx, due.conversation_id, variant_id)
    return True


def _reply(tx: Tx, due: Due, age: _Age) -> bool:
    conversations.lock(tx, due.conversation_id)
    cutoff = age.cutoff(tx)
    if cutoff is None or not holds.reply_may_go(tx, due.id, cutoff, age.imported(cutoff)):
        return False
    store.remove_invocations(tx, due.id)
    store.mark_variant(tx, due.id, now())
    _shared(tx, due.conversation_id, due.id)
    return True


def _shared(tx: Tx, conversation_id: int, variant_id: int) -> None:
    """Remove what runs and direct replies have alike, and what only they kept alive."""
    store.remove_bodies(tx, variant_id)
    for copy_id in store.copies(tx, variant_id):
        store.remove_bodies(tx, copy_id)
        store.mark_variant(tx, copy_id, now())
    _empty_steps(tx, variant_id)
    if not store.has_details(tx, conversation_id):
        _session(tx, conversation_id)
    loosen(tx, conversation_id)


def _empty_steps(tx: Tx, variant_id: int) -> None:
    """Empty a candidate's steps, but for which of its files came with which follow-up."""
    named = store.steers_with_files(tx, variant_id)
    store.empty_steps(tx, variant_id)
    for step_id, input_id in named:
        store.set_rest(tx, step_id, steer_rest(input_id))


def loosen(tx: Tx, conversation_id: int) -> None:
    """Remove the bytes that held what a conversation has no longer: a log's, images."""
    store.remove_originals(tx, store.family(tx, conversation_id))
    for owner in store.lineage(tx, conversation_id):
        if paths := store.media_paths(tx, owner):
            used = store.paths_in_use(tx, store.forks(tx, owner), paths)
            store.delete_media(tx, [i for path, i in paths.items() if path not in used])


def _session(tx: Tx, conversation_id: int) -> None:
    """Remove what was kept for the session as a whole; its last details have just gone."""
    store.empty_loose_steps(tx, conversation_id)
    agent = store.session_agent(tx, conversation_id)
    if agent is not None:
        facts = msgspec.json.decode(agent)
        kept = {name: facts[name] for name in _KEPT_OF_AGENT if facts.get(name) is not None}
        agent = msgspec.json.encode(kept).decode()
    store.reduce_session(tx, conversation_id, agent)
