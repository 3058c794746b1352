"""The Agent API: workspaces, conversations, turns, candidates, runs (agent-api.md)."""
