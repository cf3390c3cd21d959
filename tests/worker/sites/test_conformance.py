"""The sandbox's adapter keeps to the rules of every adapter."""

from collections.abc import AsyncIterator

import pytest

from tests.worker.recording_proxy import RecordingProxy
from tests.worker.running_shop import RunningShop
from tests.worker.sites.conformance import Conformance, Rig
from worker.sites.port import Item
from worker.sites.sandbox.adapter import SandboxSite

STEPS = {
    "check_session": "account",
    "add_to_cart": "cart_add",
    "read_cart": "cart",
    "open_confirmation": "confirm",
    "submit": "submit",
    "read_thanks": "thanks",
    "pay": "pay",
    "list_orders": "order_list",
    "order_detail": "order_detail",
}


class SandboxRig(Rig):
    """The sandbox shop behind a proxy that can refuse connections."""

    def __init__(self, shop: RunningShop, proxy: RecordingProxy) -> None:
        self.site = SandboxSite(proxy.url, timeout_seconds=5)
        address = f"{proxy.url}/item/sandbox-store"
        self.items = (
            Item(f"{address}/sencha-100g/", 2),
            Item(f"{address}/towel-imabari/", 1, "sky", ("御祝",)),
        )
        self.unavailable = Item(f"{address}/earphones-soldout/")
        self.options = {"payment_method": "card"}
        self.options_for_a_person = {"payment_method": "card_3ds"}
        self._shop = shop
        self._proxy = proxy

    async def received(self, operation: str) -> int:
        return self._shop.shop.requests[STEPS[operation]]

    async def placed(self) -> list[str]:
        numbers: list[str] = (await self._shop.control.counters())["order_numbers"]
        return numbers

    async def paid(self) -> list[str]:
        payments: dict[str, int] = (await self._shop.control.counters())["payments_by_order"]
        return [number for number, times in payments.items() for _ in range(times)]

    async def break_off(self, operation: str, *, after: bool) -> None:
        await self._shop.control.arm("reset", STEPS[operation], after=after)

    async def redesign(self, operation: str, part: str = "main") -> None:
        await self._shop.control.arm("redesign", STEPS[operation], blocks=[part])

    async def end_session(self) -> None:
        await self._shop.control.change_account(end_sessions=True)

    async def sell_out(self) -> None:
        await self._shop.control.change_item("sencha-100g", stock=0)

    def refuse_connections(self) -> None:
        self._proxy.stop_listening()


class TestSandbox(Conformance):
    @pytest.fixture
    async def rig(self, shop: RunningShop) -> AsyncIterator[SandboxRig]:
        async with RecordingProxy(shop.url) as proxy:
            rig = SandboxRig(shop, proxy)
            yield rig
            await rig.site.close()
