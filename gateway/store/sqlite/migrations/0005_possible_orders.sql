-- Tasks that may have an order on the site while nobody has said whether they have: there are few of them.

CREATE INDEX tasks_possibly_ordered ON tasks (site)
WHERE (may_have_clicked = 1 OR order_known = 1) AND status NOT IN ('succeeded', 'failed');
