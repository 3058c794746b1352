"""Whatever the order of imports of a growing log, exports and prunes, the record stays one whole.

A state machine writes a log as a program would, with rewinds, and between any two lines has it
imported, exported or pruned.
"""

from collections import Counter
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from exports import exported_bytes, row_id
from people import make_org
from stenograph.errors import InvalidInputError
from stenograph.retention import integrity
from stenograph.retention.prune import prune
from stenograph.sessions import messages, session
from stenograph.storage import location
from stenograph.trajectories.atif.check import parse
from stenograph.trajectories.recording.record import record
from trajectories.importers.claude_code_lines import Log, call, text


class Program(RuleBasedStateMachine):
    """A log that grows, and a record that is told of it now and then."""

    template: Path

    @initialize()
    def start(self):
        self.folder = TemporaryDirectory()
        path = Path(self.folder.name) / "steno.db"
        path.write_bytes(self.template.read_bytes())
        self.database = location.connect(location.Location(f"sqlite:///{path}"))
        self.org = make_org(self.database)
        self.numbers = count()
        self.log, self.ends = Log(), [None]
        self.session_id, self.pruned, self.draft = None, False, None
        self.say()

    def teardown(self):
        if hasattr(self, "database"):
            self.database.close()
            self.folder.cleanup()

    @rule()
    def say(self):
        self.log.user(f"prompt {next(self.numbers)}")

    @rule(calls=st.integers(0, 2))
    def answer(self, calls):
        number = next(self.numbers)
        made = [call(f"c{number}-{n}", command="ls") for n in range(calls)]
        self.log.answer(f"m{number}", text(f"answer {number}"), *made)
        for block in made:
            self.log.result(block["id"], f"out of {block['id']}")
        if not calls:
            self.ends.append(self.log.last)

    @rule(data=st.data())
    def rewind(self, data):
        self.log.last = data.draw(st.sampled_from(self.ends))
        self.say()
        self.answer(0)

    @rule()
    def take_in(self):
        try:
            draft = self.log.read()
        except InvalidInputError:
            return
        (found,) = self.database.write(lambda tx: record(tx, self.org.owner, draft))
        (again,) = self.database.write(lambda tx: record(tx, self.org.owner, draft))
        assert self.session_id in (None, found.session_id)
        assert (again.change, again.session_id) == ("unchanged", found.session_id)
        self.session_id, self.draft = found.session_id, draft

    @precondition(lambda self: self.session_id is not None)
    @rule()
    def prune(self):
        used = self.used()
        prune(self.database, 0, rewrite=False)
        self.pruned = True
        assert self.used() == used

    def used(self):
        with self.database.read() as tx:
            found = session.find(tx, self.org.owner, self.session_id)
            return session.details(tx, [found])[found.id].usage

    def feed(self):
        with self.database.read() as tx:
            return messages.page(tx, row_id(self.database, self.session_id), None, 1000).items

    @precondition(lambda self: self.session_id is not None)
    @invariant()
    def the_export_is_valid_and_tells_the_log(self):
        if self.draft is None:
            return
        document = parse(exported_bytes(self.database, self.session_id, "none")).trajectory
        if self.pruned:
            return
        assert [(s.source, s.message) for s in document.steps] == [
            (s.step.source, s.step.message) for s in self.draft.steps
        ]
        told = [s.metrics.prompt_tokens for s in document.steps if s.metrics]
        assert (document.final_metrics.total_prompt_tokens or 0) == sum(told)

    @precondition(lambda self: self.session_id is not None)
    @invariant()
    def the_feed_has_each_prompt_once_and_a_reply_for_each_turn(self):
        items = self.feed()
        said = [item.content for item in items if item.role == "user"]
        prompts = [s.step.message for s in self.draft.steps if s.part in ("prompt", "steer")]
        assert Counter(said) == Counter(prompts)
        cursors = [item.cursor for item in items]
        assert cursors == sorted(set(cursors))
        with self.database.read() as tx:
            turns = tx.value(
                "SELECT count(*) FROM turns WHERE conversation_id = :id",
                id=row_id(self.database, self.session_id),
            )
        assert sum(item.kind == "reply" for item in items) == turns

    @precondition(lambda self: self.draft is not None)
    @invariant()
    def every_step_of_every_branch_is_there_once(self):
        branches = [self.draft.steps, *(branch.steps for branch in self.draft.abandoned)]
        with self.database.read() as tx:
            kept = [row[0] for row in tx.rows("SELECT external_key FROM steps")]
        assert Counter(kept) == Counter(step.key for steps in branches for step in steps)

    @invariant()
    def the_record_is_whole(self):
        if hasattr(self, "database"):
            assert integrity.check(self.database) == []


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
def test_any_order_of_imports_exports_and_prunes(sqlite_template):
    machine = type("Machine", (Program,), {"template": sqlite_template})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=15, stateful_step_count=14, deadline=None)
    )
