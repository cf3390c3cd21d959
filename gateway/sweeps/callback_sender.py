"""Sends one callback: signed, to an address that was judged, without redirects, within bounds.

The rule: docs/callbacks.md#what-the-gateway-does.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from ipaddress import ip_address
from typing import Final

import httpx
from standardwebhooks.webhooks import Webhook

from common.bounded_http import BUDGET, BoundedTransport, Budget
from gateway.domain.addresses import AddressRefusedError, check_address
from gateway.domain.callbacks import Delivery
from gateway.domain.fields import callback_url
from gateway.domain.instant import parse_utc
from gateway.domain.refusals import RefusedError
from gateway.sweeps.resolver import Resolver

TOTAL_SECONDS: Final = 15.0
"""From the look-up of the name to the status of the answer."""

_TIMEOUT: Final = httpx.Timeout(10.0, connect=5.0)
_MAX_ADDRESSES: Final = 4
_MAX_ANSWER_BYTES: Final = 16 * 1024
"""All that is read of an answer: its head, with informational answers (1xx) before it."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
OpenClient = Callable[[], httpx.AsyncClient]


@dataclass(frozen=True, slots=True)
class SendResult:
    """What came of a try: whether the receiver took it, one sentence, and whether no further try can help."""

    taken: bool
    told: str
    hopeless: bool = False


class _NotNowError(Exception):
    """It cannot be sent as things stand; a setting or a name server may change that."""


class CallbackSender:
    """Posts callbacks. `secrets` sign them, each adding a signature, so that a secret can be rotated; none: unsigned.

    `allowed_hosts`: the only host names that may be posted to; none: any. `resolve` and `open_client` are replaced in
    tests.
    """

    def __init__(
        self,
        secrets: Sequence[str] = (),
        allowed_hosts: Collection[str] = (),
        *,
        resolve: Resolve | None = None,
        open_client: OpenClient | None = None,
    ) -> None:
        self._signers = [Webhook(secret) for secret in secrets]
        self._allowed_hosts = frozenset(allowed_hosts)
        self._resolve = resolve or Resolver()
        if open_client is None:
            _authorities()  # now, as it would hold up the event loop later
        self._open_client = open_client or _open_client
        self._agent = f"order-gateway/{version('order-gateway')}"

    async def send(self, delivery: Delivery) -> SendResult:
        """Try to deliver once. Whatever goes wrong is told in the outcome, without the URL, which may hold a key."""
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                status = await self._post(delivery)
        except TimeoutError:
            return SendResult(taken=False, told=f"no answer within {TOTAL_SECONDS:g} s")
        except AddressRefusedError as error:
            return SendResult(taken=False, told=f"not sent: {error}", hopeless=True)
        except _NotNowError as error:
            return SendResult(taken=False, told=f"not sent: {error}")
        except OSError as error:
            return SendResult(taken=False, told=f"not sent: the host {error.strerror or error}")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError):
            return SendResult(taken=False, told="not sent: the URL cannot be used", hopeless=True)
        except httpx.HTTPError as error:
            return SendResult(taken=False, told=f"no answer: {type(error).__name__}")
        redirect = ", redirects are not followed" if 300 <= status < 400 else ""  # noqa: PLR2004 - HTTP's classes
        return SendResult(taken=200 <= status < 300, told=f"the receiver answered {status}{redirect}")  # noqa: PLR2004

    async def _post(self, delivery: Delivery) -> int:
        """Post to the first of the host's addresses that can be connected to; return the status."""
        _check_url(delivery.url)
        url = httpx.URL(delivery.url)
        host = url.raw_host.decode("ascii")
        if self._allowed_hosts and host.rstrip(".").lower() not in self._allowed_hosts:
            raise _NotNowError("the host is not in RAKUTEN_CALLBACK_ALLOWED_HOSTS")
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = await self._resolve(host, port)
        # One bad address among good ones is no accident, so all are judged before the first is connected to.
        for address in addresses:
            check_address(ip_address(address))
        failure: httpx.TransportError | None = None
        for address in addresses[:_MAX_ADDRESSES]:
            try:
                return await self._post_to(address, url, host, delivery)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure or _NotNowError("the host has no address")

    async def _post_to(self, address: str, url: httpx.URL, host: str, delivery: Delivery) -> int:
        headers = {"Host": url.netloc.decode("ascii"), "Content-Type": "application/json", "User-Agent": self._agent}
        headers |= self._signed(delivery)
        BUDGET.set(Budget(_MAX_ANSWER_BYTES))
        async with (
            self._open_client() as client,
            # The certificate is judged for the host that the URL names, not for the address.
            client.stream(
                "POST",
                url.copy_with(host=address),
                content=delivery.body.encode("utf-8", "replace"),
                headers=headers,
                extensions={"sni_hostname": host},
            ) as answer,
        ):
            # The body of the answer is of no interest, so however long it is, it is not read.
            return answer.status_code

    def _signed(self, delivery: Delivery) -> dict[str, str]:
        at = parse_utc(delivery.tried_at)
        headers = {"webhook-id": delivery.callback_id, "webhook-timestamp": str(int(at.timestamp()))}
        if self._signers:
            signatures = (signer.sign(delivery.callback_id, at, delivery.body) for signer in self._signers)
            headers["webhook-signature"] = " ".join(signatures)
        return headers


def _check_url(url: str) -> None:
    """Refuse what a submission would be refused for: an older gateway may have taken it."""
    try:
        callback_url("callback_url", url)
    except RefusedError as error:
        raise AddressRefusedError(error.refusal.violations[0].description) from None


def _open_client() -> httpx.AsyncClient:
    """Open a client for one request: no connection is ever used for a second host of the same address."""
    transport = BoundedTransport(_authorities())
    return httpx.AsyncClient(transport=transport, timeout=_TIMEOUT, trust_env=False, follow_redirects=False)


@cache
def _authorities() -> ssl.SSLContext:
    """Return the authorities that the system trusts; reading them takes a tenth of a second."""
    return httpx.create_ssl_context()
