-- The number of the database in its cluster: a clone has another one. Empty: it was written by a program that did not know it.
ALTER TABLE database_life ADD COLUMN database_oid text COLLATE "C" NOT NULL DEFAULT '';
