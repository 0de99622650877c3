-- Rewinds take messages out of sight, summaries begin a context. docs/protocol/store-format.md explains each column.

ALTER TABLE messages ADD COLUMN rewound INTEGER;
ALTER TABLE messages ADD COLUMN is_summary INTEGER NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN undoable_from INTEGER NOT NULL DEFAULT 1;

-- The conversation, in its order: what is paged through and counted.
CREATE INDEX messages_of_conversation ON messages (thread_id, position) WHERE rewound IS NULL;
-- The last summary is where a load begins.
CREATE INDEX messages_that_sum_up ON messages (thread_id, position) WHERE is_summary = 1 AND rewound IS NULL;
-- Which rewind was the last.
CREATE INDEX messages_that_were_rewound ON messages (thread_id, rewound) WHERE rewound IS NOT NULL;
