"""Wake-ups between those who change and those who wait. Only hints: a poll stands behind every wait."""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Self


class Subscription:
    """One waiter's view of a topic. Use it as a context manager."""

    def __init__(self, notifier: "Notifier", topic: str) -> None:
        self._notifier = notifier
        self._topic = topic
        self._event = asyncio.Event()
        self.count = 0
        """How many hints have been published."""

    def __enter__(self) -> Self:
        self._notifier._add(self._topic, self)  # noqa: SLF001 - the two are one mechanism
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._notifier._remove(self._topic, self)  # noqa: SLF001 - the two are one mechanism

    def wake(self) -> None:
        """End the current wait, or the next one."""
        self._event.set()

    async def wait(self, timeout: float | None) -> bool:  # noqa: ASYNC109 - the caller has an answer to no hint
        """Wait for a hint since the last wait; False if none came in `timeout` seconds (None: for ever)."""
        try:
            async with asyncio.timeout(timeout):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Notifier:
    """Hands hints from `publish` to the subscriptions of their topics."""

    def __init__(self) -> None:
        self._topics: dict[str, set[Subscription]] = {}
        self.closing = False
        """True once the gateway is stopping; those who wait look at it after every wake-up."""

    def subscribe(self, topic: str) -> Subscription:
        """Return a subscription; hints count from when it is entered."""
        return Subscription(self, topic)

    def publish(self, topics: Iterable[str]) -> None:
        """Wake those who wait for any of `topics`."""
        for topic in topics:
            for subscription in self._topics.get(topic, ()):
                subscription.count += 1
                subscription.wake()

    def topics(self) -> frozenset[str]:
        """Return the topics that somebody waits for."""
        return frozenset(self._topics)

    def close(self) -> None:
        """Wake everybody for the last time."""
        self.closing = True
        for subscriptions in self._topics.values():
            for subscription in subscriptions:
                subscription.wake()

    def _add(self, topic: str, subscription: Subscription) -> None:
        self._topics.setdefault(topic, set()).add(subscription)
        if self.closing:
            subscription.wake()

    def _remove(self, topic: str, subscription: Subscription) -> None:
        subscriptions = self._topics[topic]
        subscriptions.discard(subscription)
        if not subscriptions:
            del self._topics[topic]
