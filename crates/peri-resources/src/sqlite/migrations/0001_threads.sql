-- Threads, their messages and the turns that have ended. docs/protocol/store-format.md explains each column.

CREATE TABLE threads (
  id               TEXT    NOT NULL PRIMARY KEY,
  parent_thread_id TEXT    REFERENCES threads (id) ON DELETE CASCADE,
  cwd              TEXT    NOT NULL,
  title            TEXT,
  created_at_ms    INTEGER NOT NULL,
  updated_at_ms    INTEGER NOT NULL,
  epoch            INTEGER NOT NULL DEFAULT 0,
  close_intent     INTEGER,
  open_turn        TEXT
) STRICT;

-- The lists: newest change first, children hidden.
CREATE INDEX threads_by_change ON threads (updated_at_ms DESC, id DESC) WHERE parent_thread_id IS NULL;
CREATE INDEX threads_by_cwd ON threads (cwd, updated_at_ms DESC, id DESC) WHERE parent_thread_id IS NULL;
-- Deleting a thread looks for its children.
CREATE INDEX threads_by_parent ON threads (parent_thread_id) WHERE parent_thread_id IS NOT NULL;

-- Apart from the thread's row, which every commit rewrites: this one is large and never changes.
CREATE TABLE frozen_contexts (
  thread_id TEXT    NOT NULL PRIMARY KEY REFERENCES threads (id) ON DELETE CASCADE,
  version   INTEGER NOT NULL,
  bytes     BLOB    NOT NULL
) STRICT;

CREATE TABLE messages (
  thread_id     TEXT    NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  position      INTEGER NOT NULL,
  id            TEXT    NOT NULL,
  turn_id       TEXT    NOT NULL,
  created_at_ms INTEGER NOT NULL,
  body          TEXT    NOT NULL,
  PRIMARY KEY (thread_id, position),
  UNIQUE (thread_id, id)
) STRICT;

CREATE TABLE turns (
  thread_id TEXT    NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  position  INTEGER NOT NULL,
  id        TEXT    NOT NULL,
  ended     TEXT    NOT NULL,
  PRIMARY KEY (thread_id, position),
  UNIQUE (thread_id, id)
) STRICT;
