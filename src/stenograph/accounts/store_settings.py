"""The SQL of what an organization sets up for its agents: MCP servers, its own keys for models."""

from stenograph.storage.database import Row, Tx

_SERVER = (
    "id, public_id, organization_id, name, transport, url, command, ciphertext, enabled,"
    " created_at, updated_at"
)
_CREDENTIAL = "provider_id, ciphertext, created_at, updated_at"


def mcp_servers(tx: Tx, organization_id: int, *, all: bool = True) -> list[Row]:
    """Return an organization's MCP servers by name; not `all`: those that are enabled."""
    return tx.rows(
        f"SELECT {_SERVER} FROM mcp_servers WHERE organization_id = :organization_id"
        " AND enabled >= :least ORDER BY name",
        organization_id=organization_id,
        least=0 if all else 1,
    )


def mcp_server(tx: Tx, organization_id: int, public_id: str) -> Row | None:
    """Return an MCP server."""
    return tx.row(
        f"SELECT {_SERVER} FROM mcp_servers WHERE organization_id = :organization_id"
        " AND public_id = :public_id",
        organization_id=organization_id,
        public_id=public_id,
    )


def hold_mcp_server(tx: Tx, organization_id: int, public_id: str) -> None:
    """Hold an MCP server until the transaction ends, if it is there."""
    tx.row(
        "SELECT id FROM mcp_servers WHERE organization_id = :organization_id"
        f" AND public_id = :public_id{tx.for_update}",
        organization_id=organization_id,
        public_id=public_id,
    )


def insert_mcp_server(tx: Tx, **columns: object) -> bool:
    """Insert an MCP server; False if one of its name is there."""
    names = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    return bool(
        tx.run(
            f"INSERT INTO mcp_servers ({names}) VALUES ({values})"
            " ON CONFLICT (organization_id, name) DO NOTHING",
            **columns,
        )
    )


def is_named(tx: Tx, organization_id: int, name: str, but: str) -> bool:
    """Tell whether another MCP server than `but` (a public id) has this name."""
    found = tx.value(
        "SELECT 1 FROM mcp_servers WHERE organization_id = :organization_id AND name = :name"
        " AND public_id <> :but",
        organization_id=organization_id,
        name=name,
        but=but,
    )
    return found is not None


def update_mcp_server(
    tx: Tx,
    organization_id: int,
    public_id: str,
    *,
    name: str,
    url: str | None,
    command: str | None,
    ciphertext: bytes,
    enabled: bool,
    at: int,
) -> None:
    """Write what an MCP server is from `at` on, or a moment later: each version has its own."""
    tx.run(
        "UPDATE mcp_servers SET name = :name, url = :url, command = :command,"
        " ciphertext = :ciphertext, enabled = :enabled,"
        " updated_at = CASE WHEN updated_at < :at THEN :at ELSE updated_at + 1 END"
        " WHERE organization_id = :organization_id AND public_id = :public_id",
        organization_id=organization_id,
        public_id=public_id,
        name=name,
        url=url,
        command=command,
        ciphertext=ciphertext,
        enabled=int(enabled),
        at=at,
    )


def delete_mcp_server(tx: Tx, organization_id: int, public_id: str) -> bool:
    """Delete an MCP server; False if there is none by that id."""
    return bool(
        tx.run(
            "DELETE FROM mcp_servers WHERE organization_id = :organization_id"
            " AND public_id = :public_id",
            organization_id=organization_id,
            public_id=public_id,
        )
    )


def count_mcp_servers(tx: Tx, organization_id: int) -> int:
    """Count an organization's MCP servers."""
    return int(
        tx.value(
            "SELECT count(*) FROM mcp_servers WHERE organization_id = :organization_id",
            organization_id=organization_id,
        )
    )


def provider_credentials(tx: Tx, organization_id: int) -> list[Row]:
    """Return an organization's own keys for models, by provider, sealed."""
    return tx.rows(
        f"SELECT {_CREDENTIAL} FROM provider_credentials"
        " WHERE organization_id = :organization_id ORDER BY provider_id",
        organization_id=organization_id,
    )


def provider_credential(tx: Tx, organization_id: int, provider_id: str) -> Row | None:
    """Return an organization's own key for one provider, sealed."""
    return tx.row(
        f"SELECT {_CREDENTIAL} FROM provider_credentials"
        " WHERE organization_id = :organization_id AND provider_id = :provider_id",
        organization_id=organization_id,
        provider_id=provider_id,
    )


def put_provider_credential(tx: Tx, *, updated_at: int, **columns: object) -> None:
    """Keep a key for a provider, in place of the one that may be there."""
    names = ", ".join(columns)
    values = ", ".join(f":{name}" for name in columns)
    tx.run(
        f"INSERT INTO provider_credentials ({names}, created_at, updated_at)"
        f" VALUES ({values}, :at, :at) ON CONFLICT (organization_id, provider_id) DO UPDATE"
        " SET ciphertext = excluded.ciphertext, creator_id = excluded.creator_id,"
        " updated_at = excluded.updated_at",
        at=updated_at,
        **columns,
    )


def delete_provider_credential(tx: Tx, organization_id: int, provider_id: str) -> bool:
    """Delete a key for a provider; False if there is none."""
    return bool(
        tx.run(
            "DELETE FROM provider_credentials WHERE organization_id = :organization_id"
            " AND provider_id = :provider_id",
            organization_id=organization_id,
            provider_id=provider_id,
        )
    )
