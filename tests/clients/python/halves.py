"""Both halves of the library behind one face, so that a test is written once."""

import asyncio
from collections.abc import Iterator
from typing import Any, Self

from ordergateway.client import AsyncClient, Client

KINDS = {"blocking": Client, "asyncio": AsyncClient}


class Half:
    """A client whose methods are awaited, and whose iterators are read to their end."""

    def __init__(self, kind: str, *words: Any, **settings: Any) -> None:
        self.client: Any = KINDS[kind](*words, **settings)
        self._blocks = kind == "blocking"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        closing = self.client.close()
        if not self._blocks:
            await closing

    async def call(self, method: str, *words: Any, **named: Any) -> Any:
        function = getattr(self.client, method)
        return await (asyncio.to_thread(function, *words, **named) if self._blocks else function(*words, **named))

    async def all(self, method: str, *words: Any, **named: Any) -> list[Any]:
        if self._blocks:
            return await asyncio.to_thread(lambda: list(getattr(self.client, method)(*words, **named)))
        return [each async for each in getattr(self.client, method)(*words, **named)]

    async def until(self, changes: "Iterator[Any]") -> Any:
        """The next one of an iterator; None at its end."""
        return await (asyncio.to_thread(next, changes, None) if self._blocks else anext(changes, None))  # type: ignore[call-overload]
