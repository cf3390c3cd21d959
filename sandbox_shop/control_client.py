"""A client of the sandbox shop's control API, for tests and the demonstration."""

import ssl
from types import TracebackType
from typing import Any, Self

import httpx


class ShopControl:
    """Calls `/_control/…` of the shop at `base_url`. Raises httpx.HTTPError where the shop refuses or is not there."""

    def __init__(self, base_url: str) -> None:
        # Loopback without TLS: a context that trusts nobody spares reading the system's authorities.
        transport = httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False)
        timeout = httpx.Timeout(10, read=150)
        self._client = httpx.AsyncClient(base_url=base_url, timeout=timeout, transport=transport, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connection back."""
        await self._client.aclose()

    async def counters(self) -> dict[str, Any]:
        """Return what the shop counted; the fields stand in `sandbox_shop.control`."""
        return await self._call("GET", "/counters")

    async def wait(
        self,
        *,
        submits: int = 0,
        orders: int = 0,
        payments: int = 0,
        step: str = "",
        requests: int = 0,
        seconds: float = 60,
    ) -> bool:
        """Return True once at least so many were counted, False after `seconds`. `requests` counts those of `step`."""
        params: dict[str, str | int | float] = {"submits": submits, "orders": orders, "payments": payments}
        params |= {"step": step, "requests": requests, "timeout": seconds}
        response = await self._client.get("/_control/wait", params=params)
        return bool(response.raise_for_status().json()["reached"])

    async def orders(self) -> list[dict[str, Any]]:
        """Every order, reflected or not, oldest first."""
        orders: list[dict[str, Any]] = (await self._call("GET", "/orders"))["orders"]
        return orders

    async def add_order(self, *items: dict[str, Any], days_ago: float = 0) -> str:
        """Place an order elsewhere and return its number. Items: code, variant_id, choice, quantity."""
        order = await self._call("POST", "/orders", {"days_ago": days_ago, "items": list(items)})
        return str(order["orderNumber"])

    async def change_order(self, number: str, action: str) -> dict[str, Any]:
        """`action`: advance, cancel, pay, reflect, hide_date."""
        return await self._call("POST", f"/orders/{number}", {"action": action})

    async def arm(self, kind: str, step: str, **details: Any) -> None:
        """Arm a fault; details: after, count, seconds, blocks."""
        await self._call("POST", "/faults", {"kind": kind, "step": step, **details})

    async def disarm(self) -> None:
        """Disarm all faults."""
        await self._call("DELETE", "/faults")

    async def change_item(self, code: str, **changes: Any) -> None:
        """Change an item: price_yen, stock."""
        await self._call("POST", f"/items/{code}", changes)

    async def fill_cart(self, *items: dict[str, Any]) -> None:
        """Leave items in the account's cart."""
        await self._call("POST", "/cart", {"items": list(items)})

    async def change_account(self, **changes: bool) -> None:
        """Change the account: end_sessions, login_refused."""
        await self._call("POST", "/account", changes)

    async def force_challenge(self, challenge: str | None) -> None:
        """Every card payment asks for `3ds` or `sms`; None: no more."""
        await self._call("POST", "/payment", {"challenge": challenge})

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        response = await self._client.request(method, f"/_control{path}", json=body)
        answer: dict[str, Any] = response.raise_for_status().json()
        return answer
