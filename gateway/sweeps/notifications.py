"""Tells a channel of alerts, the most urgent first, until it has taken them (docs/notifications.md)."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.domain.models import Policy
from gateway.domain.notifications import TEST, NotifyPolicy, Told
from gateway.operations.alert_outbox import read_time
from gateway.operations.notifications import next_message, not_taken, note_test, taken
from gateway.store.port import Store
from gateway.sweeps.alert_webhook import AlertWebhook
from gateway.sweeps.notify_channels import Channel

_BATCH: Final = 20
"""So many messages go out in one run, so that a channel is not taken for a flood."""

_log = logging.getLogger(__name__)


class NotificationSweep:
    """One channel's. Each has its own, so that one that hangs keeps no other waiting."""

    def __init__(self, store: Store, policy: Policy, notify: NotifyPolicy, channel: Channel, interval: float) -> None:
        self._store = store
        self._policy = policy
        self._notify = notify
        self._channel = channel
        self.interval = interval

    @property
    def name(self) -> str:
        """The sweep's name, for the log."""
        return f"notify-{self._channel.name}"

    async def run_once(self) -> Mapping[str, int]:
        """Send what is due, one after the other; stop at the first that is not taken."""
        sent = 0
        while sent < _BATCH:
            outgoing = await self._store.write(next_message, self._policy, self._notify, self._channel.name)
            if outgoing is None:
                break
            trouble = await self._channel.send(outgoing.message)
            if trouble is None:
                await self._store.write(taken, self._channel.name, outgoing)
                sent += 1
                continue
            given_up = await self._store.write(not_taken, self._channel.name, outgoing, trouble)
            if given_up:
                _log.error(
                    "channel=%s: %d notifications were not taken for days: given up", self._channel.name, given_up
                )
            elif outgoing.told[0].attempts == 0:
                _log.warning("channel=%s does not take a message: %s", self._channel.name, trouble)
            break
        return {"sent": sent}


class ChannelTest:
    """Sends a test through every channel at once, and to the webhook."""

    def __init__(self, store: Store, channels: Sequence[Channel], webhook: AlertWebhook | None) -> None:
        self._store = store
        self._channels = channels
        self._webhook = webhook

    async def __call__(self) -> list[Told]:
        """Send it and return what each made of it; nothing where there is no channel."""
        tries = [self._try(channel) for channel in self._channels]
        if self._webhook is not None:
            tries.append(self._post(self._webhook))
        return list(await asyncio.gather(*tries))

    async def _try(self, channel: Channel) -> Told:
        trouble = await channel.send(TEST)
        await self._store.write(note_test, channel.name, trouble)
        return Told(channel.name, trouble)

    async def _post(self, webhook: AlertWebhook) -> Told:
        return Told(webhook.name, await webhook.send_test(await self._store.read(read_time)))
