-- At which gateway a worker was last seen waiting for an order.
ALTER TABLE workers ADD COLUMN gateway TEXT NOT NULL DEFAULT '';
