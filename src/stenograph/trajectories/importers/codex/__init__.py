"""Read the session logs of Codex: `rollout-<time>-<thread id>.jsonl`, one file per thread.

`read` makes a draft of one file, `looks_like` recognises a log by its content, `identity` says
whose log a file is without reading all of it. A subagent is a thread with a file of its own;
`join` puts threads that were read together under those that started them.
"""

from stenograph.trajectories.importers.codex.family import join
from stenograph.trajectories.importers.codex.lines import identity, looks_like
from stenograph.trajectories.importers.codex.session import read

__all__ = ["identity", "join", "looks_like", "read"]
