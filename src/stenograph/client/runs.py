"""The runs of a workspace: how agents came to their answers."""

from stenograph.client.calls import Call, given, older, one, whole
from stenograph.client.records import OlderPage
from stenograph.client.run_records import Approval, Graph, Phases, Run, Task, TranscriptRound
from stenograph.client.steps import Script, older_pages
from stenograph.client.surface import Resource, Via, iteration, operation
from stenograph.client.turn_records import Request

_run = one("run", Run)


class RunCollection(Resource[Via]):
    """`workspace.runs`. A variant's `run_public_id` names its run."""

    @operation
    def fetch(self, run_id: str) -> Call[Run]:
        """Read a run at a glance."""
        return Call("GET", self._path(run_id), _run)

    @operation
    def transcript(
        self,
        run_id: str,
        *,
        prefix: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Call[OlderPage[TranscriptRound]]:
        """Read rounds of the mainline, or, with the key of a call as `prefix`, of the branch
        beneath it: the newest page, or the one before a page's `next_before`."""
        return Call(
            "GET",
            self._path(run_id, "transcript"),
            older("rounds", TranscriptRound),
            query={"prefix": prefix, "before": before, "limit": limit},
        )

    @iteration
    def iter_transcript(
        self, run_id: str, *, prefix: str | None = None, newest_first: bool = False
    ) -> Script[TranscriptRound]:
        """Give all rounds. In order of creation they are all read before the first is given."""
        return older_pages(
            lambda before: RunCollection.transcript.call(
                self, run_id, prefix=prefix, before=before, limit=100
            ),
            newest_first=newest_first,
        )

    @operation
    def graph(self, run_id: str) -> Call[Graph]:
        """Read a run as a graph: tasks, what lies in what, and what reads what."""
        return Call("GET", self._path(run_id, "graph"), whole(Graph))

    @operation
    def phases(self, run_id: str) -> Call[Phases]:
        """Read how far a run has come, and what it spent."""
        return Call("GET", self._path(run_id, "phases"), whole(Phases))

    @operation
    def task(self, run_id: str, task_key: str) -> Call[Task]:
        """Read a task with what it was given and what came of it, whole."""
        return Call("GET", self._path(run_id, "tasks", task_key), one("task", Task))

    @operation
    def task_request(self, run_id: str, task_key: str) -> Call[Request]:
        """Read what was sent to the model in one round."""
        path = self._path(run_id, "tasks", task_key, "request")
        return Call("GET", path, one("request", Request))

    @operation
    def approve(self, run_id: str, task_key: str) -> Call[Approval]:
        """Let a call be made that waits for it: the run's `attention` names it."""
        return self._decide(run_id, task_key, "approve", None)

    @operation
    def deny(self, run_id: str, task_key: str, *, note: str | None = None) -> Call[Approval]:
        """Have a call not made; the agent reads the note."""
        return self._decide(run_id, task_key, "deny", note)

    @operation
    def cancel(self, run_id: str) -> Call[Run]:
        """Stop a run, and the subagents it started; its turn is canceled."""
        return Call("POST", self._path(run_id, "cancellation"), _run, status=202)

    @operation
    def abandon(self, run_id: str) -> Call[Run]:
        """Give up a run that waits for a person; its turn has failed for good."""
        return Call("POST", self._path(run_id, "abandonment"), _run)

    @operation
    def retry(self, run_id: str) -> Call[Run]:
        """Take up a failed run of the newest turn after its last good round."""
        return Call("POST", self._path(run_id, "retry"), _run, status=202)

    @operation
    def retry_task(self, run_id: str, task_key: str) -> Call[Run]:
        """As `retry`, if this is the round that failed."""
        return Call("POST", self._path(run_id, "tasks", task_key, "retry"), _run, status=202)

    def _decide(
        self, run_id: str, task_key: str, decision: str, note: str | None
    ) -> Call[Approval]:
        path = self._path(run_id, "tasks", task_key, "approval")
        body = {"approval": given(decision=decision, note=note)}
        return Call("POST", path, one("approval", Approval), body=body)
