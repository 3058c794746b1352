"""Models: which there are, how one is asked, and what came back.

No storage and no domain here: a `request.ModelRequest` goes in, deltas and one `answer.Response`
come out of `stream.stream`, or a `failures.ModelFailedError` is raised. What the providers' wires
look like is pydantic-ai's business; it is imported only when a model is first asked.
"""
