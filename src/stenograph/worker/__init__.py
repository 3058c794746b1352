"""A machine that works for agents: it enrols, claims their tool calls and settles them.

Nothing of the record is loaded here; all a worker knows came over HTTP or lies below its root.
"""
