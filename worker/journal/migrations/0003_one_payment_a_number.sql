-- An order number of a site is the target of one task's payment alone, and never that of a number known for another task.

CREATE TRIGGER payments_one_a_number BEFORE INSERT ON payments
WHEN EXISTS (
    SELECT 1 FROM orders AS other LEFT JOIN payments AS paid ON paid.task_id = other.task_id
    WHERE other.task_id <> NEW.task_id
        AND other.site = (SELECT site FROM orders WHERE task_id = NEW.task_id)
        AND (other.site_order_id = NEW.site_order_id OR paid.site_order_id = NEW.site_order_id))
BEGIN SELECT RAISE(ABORT, 'the order number is another task''s'); END;
