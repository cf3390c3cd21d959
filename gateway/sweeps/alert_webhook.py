"""Posts every alert raised or cleared to RAKUTEN_ALERT_WEBHOOK_URL, those about tasks first, until it is taken.

The rule: docs/specification.md#alerts.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx
from standardwebhooks.webhooks import Webhook

from common.bounded_http import BUDGET, BoundedTransport, Budget
from gateway.domain.instant import parse_utc
from gateway.domain.notifications import TEST
from gateway.operations.alert_outbox import delivered, failed, next_due, read_time
from gateway.store.alert_deliveries import Notice
from gateway.store.port import Store

_TIMEOUT_SECONDS: Final = 10.0
_TOTAL_SECONDS: Final = 15.0
_MAX_ANSWER_BYTES: Final = 16 * 1024
"""All that is read of an answer: its head, with informational answers (1xx) before it."""

_BATCH: Final = 50

_log = logging.getLogger(__name__)


def body_of(notice: Notice) -> dict[str, Any]:
    """Return the JSON that is posted; the same on each try."""
    return {
        "type": f"alert.{notice.edge}",
        "id": f"alert-{notice.delivery_id}",
        "timestamp": notice.raised_at if notice.edge == "raised" else notice.cleared_at,
        "data": {
            "alert_id": notice.alert_id,
            "kind": notice.kind.value,
            "subject": notice.subject,
            "message": notice.message,
            "raised_at": notice.raised_at,
            "cleared_at": notice.cleared_at if notice.edge == "cleared" else None,
        },
    }


class AlertWebhook:
    """Where alerts are posted. `secrets` sign what is posted, each adding a signature; none: it is not signed."""

    name: Final = "webhook"

    def __init__(self, url: str, secrets: Sequence[str] = ()) -> None:
        self._url = url
        self._signers = [Webhook(secret) for secret in secrets]
        # Reading the system's certificates takes a while, so it is done once.
        self._tls = ssl.create_default_context()

    def open(self) -> httpx.AsyncClient:
        """Open a client for some messages."""
        return httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, transport=BoundedTransport(self._tls), trust_env=False)

    async def post(self, client: httpx.AsyncClient, body: Mapping[str, Any], utc: str) -> str | None:
        """Post a message; None if it was taken, else what came instead. The URL, which may hold a key, is not told."""
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        at = parse_utc(utc)
        headers = {"webhook-id": body["id"], "content-type": "application/json"}
        if self._signers:
            signatures = " ".join(signer.sign(body["id"], at, content) for signer in self._signers)
            headers |= {"webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signatures}
        try:
            BUDGET.set(Budget(_MAX_ANSWER_BYTES))
            # The answer's body is of no interest, so however long it is, it is not read.
            async with (
                asyncio.timeout(_TOTAL_SECONDS),
                client.stream("POST", self._url, content=content.encode(), headers=headers) as answer,
            ):
                return None if answer.is_success else f"HTTP status {answer.status_code}"
        except TimeoutError:
            return f"no answer within {_TOTAL_SECONDS:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return type(error).__name__

    async def send_test(self, utc: str) -> str | None:
        """Post a test; see post."""
        body = {"type": "alert.test", "id": f"alert-test-{utc}", "timestamp": utc, "data": {"message": TEST.body}}
        async with self.open() as client:
            return await self.post(client, body, utc)


class AlertWebhookSweep:
    """Delivers the outbox of alerts. Anything but a 2xx answer is tried again, for three days."""

    name = "alert-webhook"

    def __init__(self, store: Store, webhook: AlertWebhook, interval: float) -> None:
        self._store = store
        self._webhook = webhook
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Post what is due, one after the other; stop at the first that is not taken."""
        sent = 0
        notice = await self._store.read(next_due)
        if notice is None:
            return {"sent": 0}
        async with self._webhook.open() as client:
            while notice is not None and sent < _BATCH:
                trouble = await self._webhook.post(client, body_of(notice), await self._store.read(read_time))
                if trouble is None:
                    await self._store.write(delivered, notice.delivery_id)
                    sent += 1
                    notice = await self._store.read(next_due)
                    continue
                if await self._store.write(failed, notice.delivery_id):
                    _log.error("alert %d was not taken by the webhook for days and is given up", notice.alert_id)
                elif notice.attempts == 0:
                    _log.warning("the alert webhook does not take alert %d: %s", notice.alert_id, trouble)
                break
        return {"sent": sent}
