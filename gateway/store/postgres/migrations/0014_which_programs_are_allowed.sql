-- A gateway is known by the newest schema version that it knows. One that is older than `oldest_program` must not go on:
-- each group of operations reads it. A migration that takes something away which older programs use raises it, in its
-- own transaction; one that only adds leaves it as it is (docs/adr/0021-expand-then-contract.md).
CREATE TABLE schema_compatibility (
    one bigint PRIMARY KEY CHECK (one = 1),
    oldest_program bigint NOT NULL
);

INSERT INTO schema_compatibility (one, oldest_program) VALUES (1, 11);

-- What each gateway knows. Those of before this version do not say so; 11 is the oldest that they can be.
ALTER TABLE gateways ADD COLUMN program bigint NOT NULL DEFAULT 11;
