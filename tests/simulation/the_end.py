"""What must be so when everything has healed and nothing is left to do."""

from tests.simulation.books import Books
from tests.simulation.reader import Reader


def judge_end(books: Books, read: Reader) -> None:
    """Compares what the gateway, the journals and the shop know in the end."""
    broken = books.broken
    tasks = {row["task_id"]: row for row in read("SELECT * FROM tasks")}
    for task_id in sorted(books.accepted_submits - tasks.keys()):
        broken(f"{task_id}: an acknowledged submit is lost", grave=True)
    for task_id, task in tasks.items():
        orders = books.orders.get(task_id, [])
        if task_id in books.forgotten_orders and task["status"] == "failed" and task["lease_count"] == 0:
            # Filed again after a restore, and too late before any worker came to tell of it.
            books.trace.count("orders forgotten with a restore")
            continue
        if orders and not (task["order_known"] or task["order_stated"]):
            broken(f"{task_id}: the shop has order {orders[0].number}, the gateway knows of none")
        if not orders and task["order_known"]:
            broken(f"{task_id}: the gateway knows of an order, the shop has none")
        is_dry_run = task["stop_before_submit"] and task["latest_state"] == "in_cart"
        if is_dry_run and task["status"] == "succeeded":
            books.trace.count("dry runs ended")
        if (task["status"] == "succeeded") != bool(orders) and not is_dry_run:
            broken(f"{task_id}: is {task['status']} with {len(orders)} orders")
        numbers = {order.number for order in orders}
        for row in read("SELECT site_order_id FROM order_numbers WHERE task_id = ?", task_id):
            if row["site_order_id"] not in numbers:
                broken(f"{task_id}: the gateway has {row['site_order_id']}, the shop {sorted(numbers)}")
    for worker in books.workers:
        for row in worker.read("SELECT * FROM outbox WHERE outcome IS NOT NULL"):
            told = (row["state"], row["sequence"])
            forgotten = (row["task_id"], *told) in books.forgotten_reports
            if not forgotten and told not in books.tasks[row["task_id"]].sequences:
                broken(f"{row['task_id']}: report {row['sequence']} ({row['outcome']}) is not in the history")
        for row in worker.read("SELECT * FROM orders"):
            known = [order.number for order in books.orders.get(row["task_id"], [])]
            if row["site_order_id"] is not None and row["site_order_id"] not in known:
                broken(f"{row['task_id']}: {worker.name} knows {row['site_order_id']}, the shop {known}")
    for task_id, orders in books.orders.items():
        if task_id not in books.by_hand and not books.has_click(task_id):
            broken(f"{task_id}: ordered without a click record in any journal")
        for order in orders:
            if order.payments > 1:
                broken(f"{task_id}: paid {order.payments} times", grave=True)
