"""WHAT IS FORGOTTEN: execution detail that has expired, and the check that the record is whole."""
