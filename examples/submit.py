"""Submits an order and prints how it goes on: python examples/submit.py TASK_ID."""

import os
import sys

from ordergateway.client import Client, GatewayError
from ordergateway.v1.orders_pb2 import OrderState, TaskStatus

if len(sys.argv) != 2 or "RAKUTEN_API_TOKEN" not in os.environ:  # noqa: PLR2004 - the program and its one argument
    sys.exit("usage: RAKUTEN_API_TOKEN=... python examples/submit.py TASK_ID")
item = {"item_url": "http://127.0.0.1:31120/item/sandbox-store/sencha-100g/", "quantity": 2}
with Client("grpc://127.0.0.1:31110", os.environ["RAKUTEN_API_TOKEN"]) as gateway:
    try:
        order = gateway.submit(sys.argv[1], "sandbox", {"items": [item], "max_total_yen": 5000})
        print("created:", order.created)
        for task in gateway.watch(order.task_id):
            print(TaskStatus.Name(task.status), OrderState.Name(task.latest_state))
    except GatewayError as error:
        sys.exit(f"{error.code.name}: {error}")
