"""Submits an order to the sandbox shop and follows it: `python examples/submit.py TASK_ID`. See the README's tour."""

import json
import os
import sys

import grpc
from ordergateway.v1 import orders_pb2 as pb
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

if not sys.argv[1:]:
    sys.exit("usage: python examples/submit.py TASK_ID")
if "RAKUTEN_API_TOKEN" not in os.environ:
    sys.exit("set RAKUTEN_API_TOKEN in the environment; this client does not read .env")
task_id = sys.argv[1]
token = (("authorization", f"Bearer {os.environ['RAKUTEN_API_TOKEN']}"),)
intent = {
    "items": [{"item_url": "http://127.0.0.1:31120/item/sandbox-store/sencha-100g/", "quantity": 2}],
    "max_total_yen": 5000,
}
shown = None
try:
    with grpc.insecure_channel("127.0.0.1:31110", options=[("grpc.enable_http_proxy", 0)]) as channel:
        orders = OrderServiceStub(channel)
        order = pb.SubmitOrderRequest(task_id=task_id, site="sandbox", intent_json=json.dumps(intent))
        print("created:", orders.SubmitOrder(order, metadata=token).created)
        for message in orders.WatchOrder(pb.WatchOrderRequest(task_id=task_id), metadata=token):
            task = message.task  # empty in a heartbeat
            states = pb.TaskStatus.Name(task.status), pb.OrderState.Name(task.latest_state)
            if message.HasField("task") and states != shown:  # a renewed lease changes neither
                print(*states)
                shown = states
except grpc.RpcError as error:
    sys.exit(f"{error.code().name}: {error.details()}")
