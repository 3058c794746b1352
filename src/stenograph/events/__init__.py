"""WHAT HAPPENED: the journal of each conversation, and its readers."""
