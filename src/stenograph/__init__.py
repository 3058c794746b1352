"""Stenograph: the full record of what AI agents said, thought and did."""

from importlib.metadata import version

__version__ = version("stenograph")
