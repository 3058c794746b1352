"""What an organization has whose agents run here: workers, keys, servers; and how it goes wrong."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from retention.rows import T0, World, insert
from stenograph.accounts.access import Caller
from stenograph.ids import new_id
from stenograph.storage.database import Tx

Act: TypeAlias = Callable[[Tx, World], object]


def add(tx: Tx, owner: Caller, w: World) -> World:
    """Add to a world a worker that a session is bound to, and a row of each other kind."""
    made = {"organization_id": owner.organization_id, "creator_id": owner.principal_id}
    public = {"public_id": new_id(), "created_at": T0}
    w.ids["worker"] = _worker(tx, w, made, "worker")
    w.ids["folder"] = _folder(tx, w, "worker")
    w.ids["ticket"] = tx.insert(
        "enrollment_tickets", digest=w.mark("enrollment_tickets.digest").encode(),
        code_challenge="c", install_id="i", lifecycle="persistent", roots="[]", expires_at=T0,
        **made, **public,
    )  # fmt: skip
    path = w.mark("session_targets.workspace_path")
    target = {"device_id": w.ids["worker"], "root_id": w.ids["folder"], "workspace_path": path}
    insert(tx, "session_targets", conversation_id=w.ids["conversation"], **target)
    w.ids["server"] = tx.insert(
        "mcp_servers", name=w.mark("mcp_servers.name"), transport="stdio",
        command=json.dumps([w.mark("mcp_servers.command")]), updated_at=T0, **made, **public,
    )  # fmt: skip
    w.ids["key"] = tx.insert(
        "provider_credentials", provider_id="p", updated_at=T0,
        ciphertext=w.mark("provider_credentials.ciphertext").encode(), **made, **public,
    )  # fmt: skip
    w.ids["below"] = tx.insert(
        "organizations", slug="e-below", name="below", parent_id=owner.organization_id, **public
    )
    insert(
        tx, "ephemeral_workspaces", organization_id=w.ids["below"], digest=b"d", created_at=T0,
        parent_id=owner.organization_id, creator_id=owner.principal_id, expires_at=T0,
        reference=w.mark("ephemeral_workspaces.reference"),
    )  # fmt: skip
    return w


def _worker(tx: Tx, w: World, made: dict[str, Any], name: str) -> int:
    w.ids[f"key of {name}"] = tx.insert(
        "credentials", public_id=new_id(), organization_id=made["organization_id"],
        principal_id=made["creator_id"], plane="worker", name="w", hint="", scopes="[]",
        digest=w.mark(f"credentials.digest#{name}").encode(), created_at=T0,
    )  # fmt: skip
    return tx.insert(
        "devices", public_id=new_id(), credential_id=w.ids[f"key of {name}"], install_id="i",
        name=w.mark(f"devices.name#{name}"), lifecycle="persistent", created_at=T0,
        last_seen_at=T0, **made,
    )  # fmt: skip


def _folder(tx: Tx, w: World, worker: str) -> int:
    return tx.insert(
        "device_roots", public_id=new_id(), device_id=w.ids[worker], execution_mode="host",
        path_fingerprint=w.mark(f"device_roots.path_fingerprint#{worker}"), permissions="{}",
    )  # fmt: skip


# Damage


def _strangers(tx: Tx, w: World) -> None:
    """A worker of another organization, with a folder."""
    row = tx.row(
        "SELECT p.organization_id, p.id FROM principals p JOIN organizations o"
        " ON o.id = p.organization_id WHERE o.slug = 'elsewhere' ORDER BY p.id LIMIT 1"
    )
    assert row is not None
    w.ids["elsewhere"], w.ids["stranger"] = row
    made = {"organization_id": row[0], "creator_id": row[1]}
    w.ids["strange worker"] = _worker(tx, w, made, "strange worker")
    w.ids["strange folder"] = _folder(tx, w, "strange worker")


def _set(table: str, **columns: Any) -> Act:
    """Set columns of the only row that is meant; a str with @ names another row."""

    def act(tx: Tx, w: World) -> None:
        _strangers(tx, w)
        values = {
            name: w.ids[value[1:]] if isinstance(value, str) and value.startswith("@") else value
            for name, value in columns.items()
        }
        sets = ", ".join(f"{name} = :{name}" for name in values)
        row = {"devices": f" WHERE id = {w.ids['worker']}"}.get(table, "")
        tx.run(f"UPDATE {table} SET {sets}{row}", **values)

    return act


def _with_far_turn(far: Act, *more: Act) -> Act:
    def act(tx: Tx, w: World) -> None:
        for one in (far, *more):
            one(tx, w)

    return act


def damages(far: Act) -> dict[str, tuple[Act, str, str, str]]:
    """Return each damage with table, row and sentence of what is found; `far` makes a `far turn`
    with a `far round` and a candidate `far` elsewhere."""
    another, contradict = "made it belongs to another organization", "contradict each other"
    far_call = _with_far_turn(far, _set("dispatches", task_id="@far round"))
    far_file = _with_far_turn(far, _set("attachments", variant_id="@far"))
    its_key = "its key is there"
    asked = lambda tx, w: (  # noqa: E731
        tx.run("UPDATE tasks SET status = 'needs_approval' WHERE id = :id", id=w.ids["call"]),
        tx.run("UPDATE runs SET status = 'running', completed_at = NULL"),
        tx.run("DELETE FROM approvals"),
    )
    below = "ephemeral_workspaces"
    return {
        "a stranger's worker": (
            _set("devices", creator_id="@stranger"), "devices", "worker", another),
        "a stranger's ticket": (
            _set("enrollment_tickets", creator_id="@stranger"),
            "enrollment_tickets", "ticket", another),
        "a stranger's MCP server": (
            _set("mcp_servers", creator_id="@stranger"), "mcp_servers", "server", another),
        "a stranger's key for models": (
            _set("provider_credentials", creator_id="@stranger"),
            "provider_credentials", "key", another),
        "a worker with another's key": (
            _set("devices", credential_id="@key of strange worker"),
            "devices", "worker", "Its key belongs to another organization"),
        "a session on a stranger's worker": (
            _set("session_targets", device_id="@strange worker", root_id="@strange folder"),
            "session_targets", "conversation", "Its worker belongs to another organization"),
        "a session in another worker's folder": (
            _set("session_targets", root_id="@strange folder"),
            "session_targets", "conversation", "one of another worker"),
        "a session in a folder of nobody": (
            _set("session_targets", device_id=None),
            "session_targets", "conversation", "one of another worker"),
        "a dispatch of another's call": (
            far_call, "dispatches", "dispatch", "belongs to another conversation"),
        "a dispatch of another organization": (
            _set("dispatches", organization_id="@elsewhere"),
            "dispatches", "dispatch", "another organization than its conversation"),
        "a dispatch to a stranger's worker": (
            _set("dispatches", device_id="@strange worker"),
            "dispatches", "dispatch", "another organization than its conversation"),
        "a settled dispatch without its time": (
            _set("dispatches", settled_at=None), "dispatches", "dispatch", contradict),
        "a claimed dispatch without a lease": (
            _set("dispatches", status="claimed", settled_at=None),
            "dispatches", "dispatch", contradict),
        "a queued dispatch that is claimed": (
            _set("dispatches", status="queued", settled_at=None),
            "dispatches", "dispatch", contradict),
        "a decision without its time": (
            _set("approvals", decided_at=None), "approvals", "call", "Its decision has no moment"),
        "a time without a decision": (
            _set("approvals", decision=None), "approvals", "call", "Its decision has no moment"),
        "a call waits and nobody was asked": (asked, "tasks", "call", "nobody was asked"),
        "a file of another size": (
            _set("attachments", byte_size=1), "attachments", "attachment", "Its size"),
        "a file of another conversation": (
            far_file, "attachments", "attachment", "lies in another conversation"),
        "an MCP server with two places": (
            _set("mcp_servers", url="u"), "mcp_servers", "server", "or neither"),
        "an MCP server without a place": (
            _set("mcp_servers", command=None), "mcp_servers", "server", "or neither"),
        "a workspace of an organization that does not say so": (
            _set(below, parent_id="@elsewhere"), below, "below", "does not say in what"),
        "a retired workspace with its key": (
            _set(below, ciphertext=b"k", retired_at=T0), below, "below", its_key),
        "a workspace that had its session, with its key": (
            _set(below, ciphertext=b"k", conversation_id="@conversation"), below, "below",
            its_key),
    }  # fmt: skip
