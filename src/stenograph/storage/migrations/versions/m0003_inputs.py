"""Inputs in an order of their own, later than now, or blocked; attachments; default runners.

`inputs.place` orders the queue where somebody reordered it (null: as they came).
"""

from stenograph.storage.migrations import ddl

revision = "0003"
down_revision = "0002"

TABLES = """
ALTER TABLE inputs ADD COLUMN place BIGINT;
ALTER TABLE inputs ADD COLUMN deliver_at BIGINT;
ALTER TABLE inputs ADD COLUMN blocked_reason TEXT;
CREATE INDEX inputs_due ON inputs (deliver_at)
  WHERE deliver_at IS NOT NULL AND consumed_at IS NULL;

ALTER TABLE conversations ADD COLUMN default_runner_id BIGINT REFERENCES devices (id);
CREATE INDEX conversations_runner ON conversations (default_runner_id)
  WHERE default_runner_id IS NOT NULL;
CREATE INDEX conversations_deleted ON conversations (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE attachments (
  id {id},
  public_id TEXT NOT NULL UNIQUE,
  conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  input_id BIGINT REFERENCES inputs (id) ON DELETE SET NULL,
  variant_id BIGINT REFERENCES variants (id) ON DELETE CASCADE,
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  byte_size BIGINT NOT NULL,
  data {blob} NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX attachments_conversation ON attachments (conversation_id);
CREATE INDEX attachments_input ON attachments (input_id) WHERE input_id IS NOT NULL;
CREATE INDEX attachments_variant ON attachments (variant_id) WHERE variant_id IS NOT NULL;
"""


def upgrade() -> None:
    ddl.execute(TABLES)
