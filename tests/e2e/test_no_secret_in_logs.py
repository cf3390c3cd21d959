"""A real run at the most talkative level: no token, lease token, secret or key of a URL gets into any log."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from ordergateway.v1 import orders_pb2

from tests.e2e.parts import AUTHORIZED, TOKEN, Parts
from tests.gateway.callbacks.receiver import Receiver, receiving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SETTINGS = {"RAKUTEN_LOG_LEVEL": "DEBUG", "RAKUTEN_LOG_FORMAT": "json", "RAKUTEN_CALLBACK_SECRET": SECRET}


@pytest.mark.parametrize("parts", [SETTINGS], indirect=True)
async def test_a_whole_order(parts: Parts, tmp_path: Path) -> None:
    log = tmp_path / "parts.log"
    async with receiving(Receiver()) as receiver:
        intent = json.dumps({"item_url": parts.shop.item_url("sencha-100g")})
        request = orders_pb2.SubmitOrderRequest(
            task_id="po-1", site="sandbox", intent_json=intent, callback_url=receiver.url
        )
        await parts.orders.SubmitOrder(request, metadata=AUTHORIZED, timeout=30)
        await parts.worker(**SETTINGS)
        await parts.until(orders_pb2.TASK_STATUS_SUCCEEDED)
        await receiver.comes(1)
        signature = receiver.received[0].headers["webhook-signature"].partition(",")[2]
    with closing(sqlite3.connect(tmp_path / "data" / "gateway.db")) as book:
        lease_tokens = [row[0] for row in book.execute("SELECT token FROM leases")]
    assert lease_tokens
    text = log.read_text()
    assert len(text.splitlines()) > 10
    for secret in (TOKEN, SECRET, SECRET.removeprefix("whsec_"), "open-sesame", signature, *lease_tokens):
        assert secret not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert any(line.get("task_id") == "po-1" for line in lines)
    assert any(line.get("worker_id") == "worker-1" for line in lines)
