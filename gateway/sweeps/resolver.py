"""Looking up where a callback goes; whether it may go there is judged by gateway/domain/addresses.py."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from typing import Any, Final

MAX_LOOKUPS: Final = 64
"""Names looked up at the same time; a look-up cannot be broken off, so those that hang count on."""


class Resolver:
    """Finds the addresses of a host. Look-ups run in threads that hold up neither the loop nor the process's end."""

    def __init__(self) -> None:
        self._running = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses, the preferred one first. Raises OSError if there is none."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            found = await self._look_up(host, port)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def _look_up(self, host: str, port: int) -> Any:
        if self._running >= MAX_LOOKUPS:
            raise OSError("too many names are being looked up")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def tell(found: Any, error: OSError | UnicodeError | None) -> None:
            self._running -= 1
            if answer.done():
                return
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(OSError(f"cannot be resolved: {type(error).__name__}"))

        def work() -> None:
            found, error = None, None
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as failure:
                error = failure
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(tell, found, error)

        self._running += 1
        threading.Thread(target=work, name="callback-lookup", daemon=True).start()
        return await answer
