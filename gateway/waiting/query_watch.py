"""Watching a query until it ends."""

from collections.abc import AsyncGenerator

from gateway.domain.queries import QUERY_ENDED, QueryDetail
from gateway.domain.refusals import Refusal, RefusedError
from gateway.queries.read import get_query
from gateway.queries.topics import topic_of_query
from gateway.store.port import Store
from gateway.waiting.hub import Hub
from gateway.waiting.stream import HEARTBEAT, HEARTBEAT_SECONDS, Heartbeat, shutting_down


async def watch_query(store: Store, hub: Hub, query_id: str) -> AsyncGenerator[Heartbeat | QueryDetail]:
    """Yield the query now and after each change until it has ended, heartbeats in between.

    Raises RefusedError: QUERY_NOT_FOUND, or SHUTTING_DOWN when the gateway stops.
    """
    with hub.subscribe(topic_of_query(query_id)) as changes:
        last: QueryDetail | None = None
        while True:
            found = await store.read(get_query, query_id)
            if isinstance(found, Refusal):
                raise RefusedError(found)
            if found != last:
                yield found
                last = found
            if found.query.status in QUERY_ENDED:
                return
            while not await changes.wait(HEARTBEAT_SECONDS):
                yield HEARTBEAT
            if hub.closing:
                raise shutting_down()
