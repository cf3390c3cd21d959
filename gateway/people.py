"""Who is told of alerts, as the settings name them: the channels, the webhook, and the sweeps that tell them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from gateway.domain.models import Policy
from gateway.domain.notifications import NotifyPolicy
from gateway.settings import Settings
from gateway.store.port import Store
from gateway.sweeps.alert_webhook import AlertWebhook, AlertWebhookSweep
from gateway.sweeps.alerts import AlertSweep
from gateway.sweeps.notifications import ChannelTest, NotificationSweep
from gateway.sweeps.notify_channels import ESCALATION, Channel, open_channels
from gateway.sweeps.sweep import Sweep


@dataclass(frozen=True, slots=True)
class People:
    """Everybody who is told."""

    channels: Sequence[Channel]
    webhook: AlertWebhook | None
    policy: NotifyPolicy

    def sweeps(self, store: Store, policy: Policy, interval: float) -> Iterator[Sweep]:
        """Yield what finds alerts, and what tells each of them."""
        yield AlertSweep(store, policy, interval, self.policy, has_webhook=self.webhook is not None)
        if self.webhook is not None:
            yield AlertWebhookSweep(store, self.webhook, interval)
        for channel in self.channels:
            yield NotificationSweep(store, policy, self.policy, channel, interval)

    def test(self, store: Store) -> ChannelTest:
        """Return what sends a test to everybody."""
        return ChannelTest(store, self.channels, self.webhook)


def tell_people(settings: Settings) -> People:
    """Open the channels. Raises SettingsError where a URL is none, or the extra `notify` is missing."""
    first = open_channels([url.get_secret_value() for url in settings.notify_urls], "NOTIFY_URLS")
    escalation = open_channels(
        [url.get_secret_value() for url in settings.notify_escalation_urls], "NOTIFY_ESCALATION_URLS", ESCALATION
    )
    url, secrets = settings.alert_webhook_url, [each.get_secret_value() for each in settings.alert_webhook_secret]
    return People(
        channels=(*first, *escalation),
        webhook=None if url is None else AlertWebhook(url.get_secret_value(), secrets),
        policy=NotifyPolicy(
            channels=tuple(channel.name for channel in first),
            escalation=tuple(channel.name for channel in escalation),
            escalate_after=timedelta(seconds=settings.notify_escalate_seconds),
            digest_every=timedelta(seconds=settings.notify_digest_seconds),
            public_url=settings.public_url or "",
        ),
    )
