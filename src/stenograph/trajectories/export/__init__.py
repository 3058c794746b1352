"""What leaves the record: a session, whole, as one ATIF document."""
