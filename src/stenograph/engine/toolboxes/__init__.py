"""Providers of tools: workers, subagents, scripts, MCP servers."""
