"""The method of OperationsService that tries the channels of alerts; operations.proto says what it answers."""

from collections.abc import Awaitable, Callable, Sequence

from ordergateway.v1 import operations_pb2

from gateway.api.call import Call
from gateway.domain.notifications import Told
from gateway.domain.refusals import Reason, Refusal, RefusedError

SendTest = Callable[[], Awaitable[Sequence[Told]]]
"""Sends a test through every channel; nothing comes back where there is none."""


class NotificationTests:
    """That method, free of any transport."""

    def __init__(self, send_test: SendTest) -> None:
        self._send_test = send_test

    async def send_test_notification(
        self, request: operations_pb2.SendTestNotificationRequest, call: Call
    ) -> operations_pb2.SendTestNotificationResponse:
        """Send a test through every channel, and say what each made of it."""
        results = await self._send_test()
        if not results:
            why = "nobody is told of alerts: set RAKUTEN_NOTIFY_URLS or RAKUTEN_ALERT_WEBHOOK_URL"
            raise RefusedError(Refusal(Reason.FEATURE_OFF, why))
        return operations_pb2.SendTestNotificationResponse(
            results=[
                operations_pb2.NotificationResult(
                    channel=told.channel, taken=told.trouble is None, told=told.trouble or ""
                )
                for told in results
            ]
        )
