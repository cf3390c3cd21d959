-- Whose token brought a worker's name first, so that no token brings any number; '' where that was not kept yet.
ALTER TABLE workers ADD COLUMN introduced_by TEXT NOT NULL DEFAULT '';
CREATE INDEX workers_by_token ON workers (introduced_by);
