-- Which stream of which session a worker's latest one is, as the worker counts: a gateway that reads an older request late
-- takes nothing for it. A gateway of the former release, which writes neither, is taken at its word as before.
ALTER TABLE streams
    ADD COLUMN session_id text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN number bigint NOT NULL DEFAULT 0;
