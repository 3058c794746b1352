"""WHAT THE MACHINE DID: runs, their tasks, model calls, and the reasoning they left."""
