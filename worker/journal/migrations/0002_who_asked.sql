-- Who asked for a reclaim, and why; and an order that ended with nothing clicked, and that a person has put back into the
-- queue, can be begun again.

ALTER TABLE reclaim_wishes ADD COLUMN requested_by TEXT NOT NULL DEFAULT '';
ALTER TABLE reclaim_wishes ADD COLUMN reason TEXT NOT NULL DEFAULT '';

DROP TRIGGER orders_keep_their_end;
CREATE TRIGGER orders_keep_their_end BEFORE UPDATE OF status ON orders
WHEN OLD.status <> 'open' AND NEW.status <> OLD.status
    AND NOT (OLD.status = 'needs_human' AND NEW.status = 'open' AND OLD.state IN ('created', 'in_cart')
        AND OLD.site_order_id IS NULL AND NOT EXISTS (SELECT 1 FROM clicks WHERE clicks.task_id = OLD.task_id))
BEGIN SELECT RAISE(ABORT, 'an ended order keeps its end'); END;
