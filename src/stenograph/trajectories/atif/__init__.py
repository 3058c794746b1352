"""ATIF, the Agent Trajectory Interchange Format (RFC 0001, versions 1.0 to 1.8)."""
