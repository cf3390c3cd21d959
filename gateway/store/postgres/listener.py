"""Hears what other gateways have changed. Only hints: a poll stands behind every wait."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import psycopg

from gateway.store.postgres.connection import Address
from gateway.store.postgres.gateways import Hearing
from gateway.store.postgres.group_log import EVERYTHING, read_payload

_AGAIN_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class Listener:
    """One connection that listens. `heard` gets the topics of others; None: all of them, since some may be lost."""

    def __init__(
        self,
        address: Address,
        gateway_id: str,
        heard: Callable[[list[str] | None], None],
        hearing: Hearing,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """`hearing` is told whether it listens; `on_lost` is called when its connection is lost."""
        self._address = address
        self._gateway_id = gateway_id
        self._heard = heard
        self._hearing = hearing
        self._on_lost = on_lost

    async def run(self) -> None:
        """Listen until cancelled, on a new connection where one is lost."""
        while True:
            try:
                await self._listen()
            except (psycopg.Error, OSError) as error:
                _log.warning("what other gateways change is not heard, only polled: %s", " ".join(str(error).split()))
            finally:
                self._hearing.ends()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _listen(self) -> None:
        async with await self._address.connect_async("listener") as connection:
            await connection.execute("LISTEN order_gateway")
            self._hearing.begins()
            self._heard(None)
            try:
                async for notification in connection.notifies():
                    gateway_id, topics = read_payload(notification.payload)
                    if gateway_id != self._gateway_id:
                        self._heard(None if topics == [EVERYTHING] else topics)
            except psycopg.Error:
                self._on_lost()
                raise
