"""An MCP server of 2025-06-18 over stdio, by hand: what the `mcp` package's own does not do.

`grow` adds a tool and says so. `python legacy_server.py rubbish` says its `TOKEN` on standard
error and between its messages, `silent` answers nothing, and `odd` has tools that are hard to tell
a model of, and fail with the code that the `mcp` package has for a connection that ended.
"""

import json
import os
import sys

tools = ["grow", "token"]


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def result(method: str, params: dict) -> dict:
    match method, params.get("name"):
        case "initialize", _:
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "legacy", "version": "1"},
            }
        case "tools/list", _:
            about = f"Knows {os.environ.get('TOKEN')}."
            schema = {"type": "object", "properties": {"of": {"type": "string"}}}
            return {
                "tools": [{"name": it, "description": about, "inputSchema": schema} for it in tools]
            }
        case _, "grow":
            tools.append("grown")
            send(method="notifications/tools/list_changed")
    return {"content": [{"type": "text", "text": f"{os.environ.get('TOKEN')} is it"}]}


def odd() -> list[dict]:
    limits = {"default": float("nan"), "maximum": float("inf")}
    large = {str(n): {"type": "string", "description": "x" * 100} for n in range(1_000)}
    return [
        {"name": "numbers", "inputSchema": {"type": "object", "properties": {"a": limits}}},
        {"name": "large", "inputSchema": {"type": "object", "properties": large}},
        {"name": "long", "description": "x" * 3_000_000, "inputSchema": {"type": "object"}},
    ]


mode = sys.argv[1] if len(sys.argv) > 1 else ""
for line in sys.stdin:
    asked = json.loads(line)
    if mode == "silent" or "id" not in asked:
        continue
    if mode == "rubbish":
        print(f"no JSON, {os.environ['TOKEN']}", flush=True)
        print(f"complains of {os.environ['TOKEN']}", file=sys.stderr, flush=True)
    if mode == "odd" and asked["method"] == "tools/list":
        send(id=asked["id"], result={"tools": odd()})
    elif mode == "odd" and asked["method"] == "tools/call":
        send(id=asked["id"], error={"code": -32000, "message": "It fell apart"})
    elif asked["method"] in ("initialize", "tools/list", "tools/call"):
        send(id=asked["id"], result=result(asked["method"], asked.get("params", {})))
    else:
        send(id=asked["id"], error={"code": -32601, "message": "Method not found"})
