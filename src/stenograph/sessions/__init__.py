"""LONG-LIVED AGENTS: Reasons, their sessions, what is said in them, and their secrets."""
