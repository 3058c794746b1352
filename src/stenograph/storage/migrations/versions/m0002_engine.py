"""What agents that run here need: workers and where sessions work, tools, approvals, MCP servers,
an organization's own keys for models, ephemeral workspaces.

None of these tables holds a word of a conversation. Sealed columns are named `ciphertext`.
"""

from stenograph.storage.migrations import ddl

revision = "0002"
down_revision = "0001"

TABLES = """
CREATE TABLE engines (
  executor TEXT PRIMARY KEY,
  seen_at BIGINT NOT NULL
);

CREATE TABLE devices (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  creator_id BIGINT NOT NULL REFERENCES principals (id),
  credential_id BIGINT NOT NULL REFERENCES credentials (id),
  install_id TEXT NOT NULL,
  name TEXT NOT NULL,
  version TEXT,
  lifecycle TEXT NOT NULL,
  machine TEXT,
  created_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  removed_at BIGINT
);
CREATE INDEX devices_organization ON devices (organization_id, id);
CREATE INDEX devices_credential ON devices (credential_id);
CREATE INDEX devices_machine ON devices (organization_id, machine) WHERE machine IS NOT NULL;

CREATE TABLE device_roots (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  device_id BIGINT NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
  path_fingerprint TEXT NOT NULL,
  permissions TEXT NOT NULL,
  execution_mode TEXT NOT NULL
);
CREATE INDEX device_roots_device ON device_roots (device_id, id);

CREATE TABLE enrollment_tickets (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  creator_id BIGINT NOT NULL REFERENCES principals (id),
  digest {blob} NOT NULL UNIQUE,
  code_challenge TEXT NOT NULL,
  install_id TEXT NOT NULL,
  lifecycle TEXT NOT NULL,
  name TEXT,
  machine TEXT,
  roots TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  used_at BIGINT
);

CREATE TABLE session_targets (
  conversation_id {key} REFERENCES conversations (id) ON DELETE CASCADE,
  device_id BIGINT REFERENCES devices (id),
  root_id BIGINT REFERENCES device_roots (id),
  machine TEXT,
  workspace_path TEXT,
  bound_at BIGINT
);
CREATE INDEX session_targets_device ON session_targets (device_id) WHERE device_id IS NOT NULL;

CREATE TABLE dispatches (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  task_id BIGINT NOT NULL UNIQUE REFERENCES tasks (id) ON DELETE CASCADE,
  device_id BIGINT REFERENCES devices (id),
  machine TEXT,
  status TEXT NOT NULL,
  claim TEXT UNIQUE,
  claims BIGINT NOT NULL DEFAULT 0,
  lease_expires_at BIGINT,
  settlement_digest {blob},
  created_at BIGINT NOT NULL,
  claimed_at BIGINT,
  settled_at BIGINT
);
CREATE INDEX dispatches_conversation ON dispatches (conversation_id);
CREATE INDEX dispatches_device ON dispatches (device_id, id) WHERE status = 'queued';
CREATE INDEX dispatches_machine ON dispatches (organization_id, machine, id)
  WHERE status = 'queued' AND machine IS NOT NULL;
CREATE INDEX dispatches_lease ON dispatches (lease_expires_at) WHERE status = 'claimed';

CREATE TABLE tool_sets (
  id {id},
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  digest {blob} NOT NULL,
  definitions TEXT NOT NULL,
  UNIQUE (conversation_id, digest)
);

CREATE TABLE approvals (
  task_id {key} REFERENCES tasks (id) ON DELETE CASCADE,
  decision TEXT,
  decider_id BIGINT REFERENCES principals (id),
  note TEXT,
  requested_at BIGINT NOT NULL,
  decided_at BIGINT
);

CREATE TABLE mcp_servers (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  creator_id BIGINT NOT NULL REFERENCES principals (id),
  name TEXT NOT NULL,
  transport TEXT NOT NULL,
  url TEXT,
  command TEXT,
  ciphertext {blob},
  enabled SMALLINT NOT NULL DEFAULT 1,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (organization_id, name)
);

CREATE TABLE provider_credentials (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  creator_id BIGINT NOT NULL REFERENCES principals (id),
  provider_id TEXT NOT NULL,
  ciphertext {blob} NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (organization_id, provider_id)
);

CREATE TABLE ephemeral_workspaces (
  organization_id {key} REFERENCES organizations (id),
  parent_id BIGINT NOT NULL REFERENCES organizations (id),
  creator_id BIGINT NOT NULL REFERENCES principals (id),
  reference TEXT NOT NULL,
  digest {blob} NOT NULL,
  ciphertext {blob},
  conversation_id BIGINT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  retired_at BIGINT,
  UNIQUE (parent_id, reference)
);
CREATE INDEX ephemeral_workspaces_expiry ON ephemeral_workspaces (expires_at)
  WHERE retired_at IS NULL;
"""


def upgrade() -> None:
    ddl.execute(TABLES)
