"""Readers of agents' logs. Each turns the bytes of a log into a `SessionDraft`, and stores nothing."""
