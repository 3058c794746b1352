"""Read the session logs of Claude Code: `<uuid>.jsonl` with its subagents and large outputs.

`read` makes a draft of one session, `looks_like` recognises a log by its content, `side_files`
says which files of a folder belong to which session.
"""

from stenograph.trajectories.importers.claude_code.files import looks_like, side_files
from stenograph.trajectories.importers.claude_code.session import read

__all__ = ["looks_like", "read", "side_files"]
