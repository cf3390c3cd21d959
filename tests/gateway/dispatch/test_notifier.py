"""A hint is never lost between two waits: whoever looks, and then waits, is woken by what came in between."""

from gateway.dispatch.notifier import Notifier


async def test_a_hint_that_comes_before_the_wait_ends_it_at_once() -> None:
    notifier = Notifier()
    with notifier.subscribe("task:po-1") as subscription:
        notifier.publish(["task:po-1"])
        assert await subscription.wait(0)
        assert subscription.count == 1
        assert not await subscription.wait(0), "one hint ends one wait"
        notifier.publish(["task:po-2"])
        assert not await subscription.wait(0), "and only one of its topic"


async def test_a_hub_that_has_closed_ends_a_wait_that_begins_after_it() -> None:
    notifier = Notifier()
    notifier.close()
    with notifier.subscribe("task:po-1") as subscription:
        assert await subscription.wait(0)
