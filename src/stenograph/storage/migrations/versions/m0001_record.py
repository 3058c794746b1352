"""The record: accounts, conversations, runs, sessions, imports, events.

Text that people wrote and agents answered lies in `turns`, `variants`, `steps` and `messages`;
execution detail, which retention deletes, in the `*_details` tables, `originals` and `media`.
Times are microseconds since the epoch, flags are 0 or 1, JSON is text.
"""

from stenograph.storage.migrations import ddl

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE organizations (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  slug TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  parent_id BIGINT REFERENCES organizations (id),
  details_retention_days BIGINT DEFAULT 90,
  created_at BIGINT NOT NULL,
  retired_at BIGINT
);

CREATE TABLE principals (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  kind TEXT NOT NULL,
  handle TEXT NOT NULL,
  display_name TEXT NOT NULL,
  role TEXT,
  created_at BIGINT NOT NULL,
  deactivated_at BIGINT,
  UNIQUE (organization_id, handle)
);

CREATE TABLE credentials (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  principal_id BIGINT NOT NULL REFERENCES principals (id),
  plane TEXT NOT NULL,
  name TEXT NOT NULL,
  digest {blob} NOT NULL UNIQUE,
  hint TEXT NOT NULL,
  scopes TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT
);
CREATE INDEX credentials_organization ON credentials (organization_id, id);

CREATE TABLE workspaces (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  owner_id BIGINT NOT NULL REFERENCES principals (id),
  creator_id BIGINT NOT NULL REFERENCES principals (id),
  name TEXT NOT NULL,
  access_mode TEXT NOT NULL,
  state TEXT NOT NULL,
  metadata TEXT NOT NULL,
  lock_version BIGINT NOT NULL,
  archived_at BIGINT,
  deleted_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX workspaces_organization ON workspaces (organization_id, id);

CREATE TABLE workspace_members (
  workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
  principal_id BIGINT NOT NULL REFERENCES principals (id),
  PRIMARY KEY (workspace_id, principal_id)
);

CREATE TABLE conversations (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
  creator_id BIGINT NOT NULL REFERENCES principals (id),
  answerer_id BIGINT REFERENCES principals (id),
  title TEXT,
  metadata TEXT NOT NULL,
  billing_subject TEXT,
  access_default TEXT NOT NULL,
  side SMALLINT NOT NULL DEFAULT 0,
  parent_id BIGINT REFERENCES conversations (id),
  spawn_key TEXT,
  label TEXT,
  source_id BIGINT REFERENCES conversations (id),
  source_turn_id BIGINT,
  source_variant_id BIGINT,
  context_revision BIGINT NOT NULL DEFAULT 0,
  next_position BIGINT NOT NULL DEFAULT 0,
  next_step BIGINT NOT NULL DEFAULT 1,
  next_cursor BIGINT NOT NULL DEFAULT 1,
  next_sequence BIGINT NOT NULL DEFAULT 1,
  active_turn_id BIGINT,
  archived_at BIGINT,
  deleted_at BIGINT,
  last_activity_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX conversations_workspace ON conversations (workspace_id, id);
CREATE INDEX conversations_activity ON conversations (workspace_id, last_activity_at, id);
CREATE INDEX conversations_parent ON conversations (parent_id, id) WHERE parent_id IS NOT NULL;

CREATE TABLE conversation_access (
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  principal_id BIGINT NOT NULL REFERENCES principals (id),
  level TEXT NOT NULL,
  PRIMARY KEY (conversation_id, principal_id)
);

CREATE TABLE ancestries (
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  depth BIGINT NOT NULL,
  ancestor_id BIGINT NOT NULL REFERENCES conversations (id),
  boundary_position BIGINT NOT NULL,
  PRIMARY KEY (conversation_id, depth)
);
CREATE INDEX ancestries_ancestor ON ancestries (ancestor_id, conversation_id);

CREATE TABLE inputs (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  state TEXT NOT NULL,
  kind TEXT NOT NULL,
  role TEXT NOT NULL,
  origin TEXT NOT NULL,
  sender_id BIGINT REFERENCES principals (id),
  text TEXT,
  options TEXT NOT NULL,
  lock_version BIGINT NOT NULL DEFAULT 0,
  turn_id BIGINT,
  created_at BIGINT NOT NULL,
  consumed_at BIGINT
);
CREATE INDEX inputs_conversation ON inputs (conversation_id, id);

CREATE TABLE turns (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  kind TEXT NOT NULL,
  role TEXT NOT NULL,
  status TEXT NOT NULL,
  visibility TEXT NOT NULL DEFAULT 'visible',
  origin TEXT NOT NULL DEFAULT 'person',
  input_id BIGINT REFERENCES inputs (id),
  speaker_id BIGINT REFERENCES principals (id),
  answerer_id BIGINT REFERENCES principals (id),
  active_variant_id BIGINT,
  deleted_at BIGINT,
  created_at BIGINT NOT NULL,
  completed_at BIGINT,
  UNIQUE (conversation_id, position)
);
CREATE INDEX turns_viewed ON turns (conversation_id, position)
  WHERE visibility <> 'visible' OR deleted_at IS NOT NULL;

CREATE TABLE turn_overrides (
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn_id BIGINT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  visibility TEXT,
  deleted_at BIGINT,
  PRIMARY KEY (conversation_id, turn_id)
);
CREATE INDEX turn_overrides_turn ON turn_overrides (turn_id);

CREATE TABLE variants (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  turn_id BIGINT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  source TEXT NOT NULL,
  status TEXT NOT NULL,
  origin_variant_id BIGINT,
  provider_id TEXT,
  model_ref TEXT,
  reasoning_enabled SMALLINT,
  reasoning_effort TEXT,
  invocation_id BIGINT,
  failure_reason TEXT,
  deleted_at BIGINT,
  details_pruned_at BIGINT,
  created_at BIGINT NOT NULL,
  completed_at BIGINT,
  prompt TEXT,
  content TEXT,
  UNIQUE (turn_id, position)
);

CREATE TABLE variant_details (
  variant_id {key} REFERENCES variants (id) ON DELETE CASCADE,
  preface TEXT,
  reasoning TEXT,
  reasoning_trace TEXT,
  reference TEXT
);

CREATE TABLE runs (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
  conversation_id BIGINT REFERENCES conversations (id) ON DELETE CASCADE,
  variant_id BIGINT UNIQUE REFERENCES variants (id) ON DELETE CASCADE,
  status TEXT NOT NULL,
  approval_mode TEXT NOT NULL,
  failure_reason TEXT,
  next_round BIGINT NOT NULL DEFAULT 1,
  started_at BIGINT,
  paused_at BIGINT,
  delivered_at BIGINT,
  completed_at BIGINT,
  details_pruned_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX runs_conversation ON runs (conversation_id, id);
CREATE INDEX runs_prunable ON runs (workspace_id, completed_at, id)
  WHERE details_pruned_at IS NULL AND completed_at IS NOT NULL;

CREATE TABLE tasks (
  id {serial},
  run_id BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  transcript_visibility TEXT NOT NULL,
  mainline SMALLINT NOT NULL DEFAULT 1,
  parent_id BIGINT,
  round_id BIGINT,
  call_index BIGINT,
  tool_call_id TEXT,
  name TEXT,
  selected_invocation_id BIGINT,
  child_conversation_id BIGINT,
  error TEXT,
  started_at BIGINT,
  completed_at BIGINT,
  created_at BIGINT NOT NULL,
  UNIQUE (run_id, key)
);
CREATE INDEX tasks_run ON tasks (run_id, id);
CREATE INDEX tasks_parent ON tasks (parent_id, id) WHERE parent_id IS NOT NULL;
CREATE INDEX tasks_round ON tasks (round_id, call_index) WHERE round_id IS NOT NULL;
CREATE INDEX tasks_selected ON tasks (run_id, id)
  WHERE kind = 'model_task' AND transcript_visibility <> 'hidden'
    AND selected_invocation_id IS NOT NULL;
CREATE INDEX tasks_rounds ON tasks (run_id, id)
  WHERE kind = 'model_task' AND transcript_visibility <> 'hidden' AND mainline = 1;

CREATE TABLE task_details (
  task_id {key} REFERENCES tasks (id) ON DELETE CASCADE,
  input TEXT,
  output TEXT,
  rest TEXT
);

CREATE TABLE invocations (
  id {id},
  task_id BIGINT REFERENCES tasks (id) ON DELETE CASCADE,
  variant_id BIGINT REFERENCES variants (id) ON DELETE CASCADE,
  number BIGINT NOT NULL DEFAULT 1,
  status TEXT NOT NULL,
  provider_id TEXT,
  model_ref TEXT,
  reasoning_enabled SMALLINT,
  reasoning_effort TEXT,
  llm_call_count BIGINT,
  started_at BIGINT,
  terminal_at BIGINT,
  created_at BIGINT NOT NULL
);
CREATE INDEX invocations_task ON invocations (task_id, id);
CREATE INDEX invocations_variant ON invocations (variant_id, id) WHERE variant_id IS NOT NULL;

CREATE TABLE invocation_details (
  invocation_id {key} REFERENCES invocations (id) ON DELETE CASCADE,
  message TEXT,
  reasoning TEXT,
  reasoning_trace TEXT,
  request TEXT,
  response TEXT,
  rest TEXT
);

CREATE TABLE usage_receipts (
  id {id},
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  run_id BIGINT,
  variant_id BIGINT,
  invocation_id BIGINT,
  provider_id TEXT,
  model_ref TEXT,
  prompt_tokens BIGINT,
  completion_tokens BIGINT,
  cached_tokens BIGINT,
  cache_write_tokens BIGINT,
  reasoning_tokens BIGINT,
  cost_usd DOUBLE PRECISION,
  occurred_at BIGINT NOT NULL
);
CREATE INDEX usage_receipts_conversation ON usage_receipts (conversation_id, id);
CREATE INDEX usage_receipts_invocation ON usage_receipts (invocation_id)
  WHERE invocation_id IS NOT NULL;

CREATE TABLE steps (
  id {id},
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  part TEXT NOT NULL,
  source TEXT NOT NULL,
  turn_id BIGINT REFERENCES turns (id) ON DELETE CASCADE,
  variant_id BIGINT REFERENCES variants (id) ON DELETE CASCADE,
  task_id BIGINT,
  origin TEXT NOT NULL DEFAULT 'person',
  external_key TEXT,
  digest {blob},
  occurred_at BIGINT,
  text TEXT,
  rest TEXT,
  UNIQUE (conversation_id, position)
);
CREATE INDEX steps_turn ON steps (turn_id, id) WHERE turn_id IS NOT NULL;
CREATE INDEX steps_variant ON steps (variant_id, id) WHERE variant_id IS NOT NULL;

CREATE TABLE messages (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  cursor BIGINT NOT NULL,
  kind TEXT NOT NULL,
  role TEXT NOT NULL,
  source TEXT,
  turn_id BIGINT REFERENCES turns (id) ON DELETE CASCADE,
  variant_id BIGINT REFERENCES variants (id) ON DELETE CASCADE,
  step_id BIGINT REFERENCES steps (id) ON DELETE CASCADE,
  status TEXT,
  outcome TEXT,
  content TEXT,
  attachments TEXT,
  created_at BIGINT,
  UNIQUE (conversation_id, cursor)
);
CREATE INDEX messages_turn ON messages (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX messages_variant ON messages (variant_id) WHERE variant_id IS NOT NULL;
CREATE INDEX messages_step ON messages (step_id) WHERE step_id IS NOT NULL;

CREATE TABLE reasons (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  owner_id BIGINT NOT NULL REFERENCES principals (id),
  name TEXT NOT NULL,
  instructions TEXT NOT NULL,
  default_model TEXT,
  repositories TEXT NOT NULL,
  is_main SMALLINT NOT NULL DEFAULT 0,
  conversation_id BIGINT REFERENCES conversations (id),
  deleted_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX reasons_organization ON reasons (organization_id, id);

CREATE TABLE reason_shares (
  reason_id BIGINT NOT NULL REFERENCES reasons (id) ON DELETE CASCADE,
  principal_id BIGINT NOT NULL REFERENCES principals (id),
  PRIMARY KEY (reason_id, principal_id)
);

CREATE TABLE sessions (
  conversation_id {key} REFERENCES conversations (id) ON DELETE CASCADE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  owner_id BIGINT NOT NULL REFERENCES principals (id),
  reason_id BIGINT REFERENCES reasons (id),
  parent_conversation_id BIGINT REFERENCES conversations (id) ON DELETE CASCADE,
  mode TEXT NOT NULL,
  status TEXT NOT NULL,
  outcome TEXT,
  recorded SMALLINT NOT NULL DEFAULT 0,
  audio SMALLINT NOT NULL DEFAULT 0,
  model TEXT,
  reasoning_effort TEXT,
  tags TEXT NOT NULL,
  options TEXT NOT NULL,
  error_class TEXT,
  reason_code TEXT,
  idempotency_key TEXT,
  idempotency_digest {blob},
  agent TEXT,
  document TEXT,
  document_session_id TEXT,
  document_trajectory_id TEXT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  ended_at BIGINT,
  UNIQUE (organization_id, idempotency_key)
);
CREATE INDEX sessions_organization ON sessions (organization_id, conversation_id);
CREATE INDEX sessions_parent ON sessions (parent_conversation_id, conversation_id)
  WHERE parent_conversation_id IS NOT NULL;
CREATE INDEX sessions_reason ON sessions (reason_id, conversation_id) WHERE reason_id IS NOT NULL;

CREATE TABLE secrets (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  creator_id BIGINT NOT NULL REFERENCES principals (id),
  name TEXT NOT NULL,
  ciphertext {blob} NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (organization_id, name)
);

CREATE TABLE session_secrets (
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  ciphertext {blob} NOT NULL
);
CREATE INDEX session_secrets_conversation ON session_secrets (conversation_id);

CREATE TABLE imports (
  id {id},
  organization_id BIGINT NOT NULL REFERENCES organizations (id),
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  format TEXT NOT NULL,
  source_key TEXT NOT NULL,
  parent_key TEXT,
  steps BIGINT NOT NULL,
  report TEXT NOT NULL,
  imported_at BIGINT NOT NULL
);
CREATE INDEX imports_source ON imports (organization_id, format, source_key);
CREATE INDEX imports_parent ON imports (organization_id, format, parent_key)
  WHERE parent_key IS NOT NULL;
CREATE INDEX imports_conversation ON imports (conversation_id);

CREATE TABLE originals (
  id {id},
  import_id BIGINT NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  digest {blob} NOT NULL,
  size BIGINT NOT NULL,
  compressed {blob},
  UNIQUE (import_id, name)
);

CREATE TABLE media (
  id {id},
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  path TEXT NOT NULL,
  media_type TEXT NOT NULL,
  data {blob} NOT NULL,
  UNIQUE (conversation_id, path)
);

CREATE TABLE events (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  sequence BIGINT NOT NULL,
  type TEXT NOT NULL,
  turn_id BIGINT,
  variant_id BIGINT,
  run_id BIGINT,
  task_id BIGINT,
  step_id BIGINT,
  payload TEXT NOT NULL,
  occurred_at BIGINT NOT NULL,
  UNIQUE (conversation_id, sequence)
);
CREATE INDEX events_task ON events (task_id) WHERE task_id IS NOT NULL;

CREATE TABLE idempotency_receipts (
  principal_id BIGINT NOT NULL REFERENCES principals (id),
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  digest {blob} NOT NULL,
  status BIGINT NOT NULL,
  resource TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (principal_id, scope, key)
);
CREATE INDEX idempotency_receipts_created ON idempotency_receipts (created_at)
"""


def upgrade() -> None:
    # Cursors hold the ids of tasks, so an id must not come again after a deletion.
    ddl.execute(TABLES)
