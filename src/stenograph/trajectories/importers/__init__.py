"""Readers of agents' logs: each turns bytes into a `SessionDraft`, and stores nothing."""
