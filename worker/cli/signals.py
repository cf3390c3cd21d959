"""The signals that end a command which runs until it is told to stop."""

import asyncio
import signal


def stop_on_signals(stop: asyncio.Event) -> None:
    """Let the first SIGTERM or SIGINT set `stop`; the second one does what it does by default."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, first)
