"""Another request commits between the moment a verb found its conversation and the one it holds it.

On PostgreSQL only: on SQLite nobody writes beside a writer.
"""

import pytest

import story
from people import make_org
from stenograph.clock import DAY, now
from stenograph.conversations import (
    access,
    archive,
    conversation,
    input_changes,
    input_queue,
    workspace,
)
from stenograph.conversations import input as inputs
from stenograph.conversations.input_changes import Draft
from stenograph.conversations.wishes import Wishes
from stenograph.errors import ConflictError, NotFoundError
from stenograph.storage import location


@pytest.fixture
def database(postgres_location):
    opened = location.connect(postgres_location)
    yield opened
    opened.close()


@pytest.fixture
def where(database):
    return story.place(database, make_org(database).owner)


def wait(database, where):
    """Put an input into the queue that waits there; returns its public id."""
    asked = Wishes(deliver_at=now() + DAY)

    def act(tx):
        made = inputs.accept(
            tx, where.caller, where.conversation, kind="message", text="Later.", wishes=asked
        )
        return made.public_id

    return database.write(act)


def verbs(database, where):
    """What is done to the queue, by name: each takes a transaction and the conversation."""
    waits = wait(database, where)
    draft = Draft("user", "Sooner.", Wishes())
    return {
        "accept": lambda tx, it: inputs.accept(tx, where.caller, it, kind="message", text="Hi"),
        "edit": lambda tx, it: input_changes.edit(tx, it, waits, lambda was: draft),
        "reorder": lambda tx, it: input_changes.reorder(tx, it, [waits]),
        "delete": lambda tx, it: input_changes.delete(tx, it, waits),
    }


def after(database, where, meanwhile, verb):
    """Find the conversation, let another request commit `meanwhile`, then do `verb`."""

    def act(tx):
        found = access.find(
            tx, where.caller, where.workspace.public_id, where.conversation.public_id
        )
        database.write(lambda other: meanwhile(other, found))
        return verb(tx, found)

    return database.write(act)


@pytest.mark.parametrize("name", ["accept", "edit", "reorder", "delete"])
def test_an_input_finds_the_conversation_deleted(database, where, name):
    verb = verbs(database, where)[name]
    with pytest.raises(NotFoundError):
        after(database, where, archive.delete, verb)


@pytest.mark.parametrize("name", ["accept", "edit", "reorder"])
def test_an_input_finds_the_conversation_archived(database, where, name):
    verb = verbs(database, where)[name]
    with pytest.raises(ConflictError) as error:
        after(database, where, archive.archive, verb)
    assert error.value.code == "conversation_archived"


def test_nothing_falls_due_in_what_was_archived_meanwhile(database, where):
    wait(database, where)
    story.run_sql(database, "UPDATE inputs SET deliver_at = 1")
    fell = after(
        database, where, archive.archive, lambda tx, found: input_queue.fall_due(tx, found.id)
    )
    assert fell == []


@pytest.mark.parametrize(
    ("change", "error"),
    [(workspace.archive, ConflictError), (workspace.delete, NotFoundError)],
)
def test_a_conversation_is_not_made_in_a_workspace_that_was_closed_meanwhile(
    database, where, change, error
):
    with pytest.raises(error):
        after(
            database,
            where,
            lambda tx, _: change(tx, where.caller, where.workspace, 0),
            lambda tx, _: conversation.create(tx, where.caller, where.workspace),
        )
