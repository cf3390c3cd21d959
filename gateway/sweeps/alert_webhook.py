"""Posts every alert raised or cleared to RAKUTEN_ALERT_WEBHOOK_URL, those about tasks first, until it is taken.

The rule: docs/specification.md#alerts.
"""

import asyncio
import logging
import ssl
from collections.abc import Mapping
from typing import Any, Final

import httpx

from common.bounded_http import BUDGET, BoundedTransport, Budget
from gateway.operations.alert_outbox import delivered, failed, next_due
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


class AlertWebhookSweep:
    """Delivers the outbox of alerts. Anything but a 2xx answer is tried again, for three days."""

    name = "alert-webhook"

    def __init__(self, store: Store, url: str, interval: float) -> None:
        self._store = store
        self._url = url
        # Reading the system's certificates takes a while, so it is done once.
        self._tls = ssl.create_default_context()
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Post what is due, one after the other; stop at the first that is not taken."""
        sent = 0
        notice = await self._store.read(next_due)
        if notice is None:
            return {"sent": 0}
        transport = BoundedTransport(self._tls)
        async with httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, transport=transport, trust_env=False) as client:
            while notice is not None and sent < _BATCH:
                trouble = await self._post(client, notice)
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

    async def _post(self, client: httpx.AsyncClient, notice: Notice) -> str | None:
        """Post a notice; None if it was taken, else what came instead. The URL, which may hold a key, is not told."""
        body = body_of(notice)
        try:
            BUDGET.set(Budget(_MAX_ANSWER_BYTES))
            # The answer's body is of no interest, so however long it is, it is not read.
            async with (
                asyncio.timeout(_TOTAL_SECONDS),
                client.stream("POST", self._url, json=body, headers={"webhook-id": body["id"]}) as answer,
            ):
                return None if answer.is_success else f"HTTP status {answer.status_code}"
        except TimeoutError:
            return f"no answer within {_TOTAL_SECONDS:g} s"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return type(error).__name__
