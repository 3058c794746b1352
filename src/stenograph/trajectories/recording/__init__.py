"""What enters the record: steps of a log, or of an agent that runs elsewhere, become rows."""
