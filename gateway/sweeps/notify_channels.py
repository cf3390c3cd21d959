"""The channels through which people are told of alerts: apprise, behind a bound of time, off the event loop.

Needs the extra `notify`, so only who is asked for a channel imports apprise. What apprise says of a failure may hold
the URL, which is a secret: nothing of it is told or logged but the status of an answer.
"""

import asyncio
import contextlib
import importlib
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

from common.settings import PREFIX, SettingsError
from gateway.domain.notifications import Message

TOTAL_SECONDS: Final = 30.0
"""How long a channel may take over a message; then it counts as not taken."""

ESCALATION: Final = "escalation-"
"""How the names of the channels begin that are told if nobody has decided in time."""

_STATUS: Final = re.compile(r"error[=: ]+(\d{3})\b")
_SCHEME: Final = re.compile(r"([A-Za-z0-9.+-]{1,32})://")


class Channel(Protocol):
    """Something that takes messages. Its name may be logged and stored."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    async def send(self, message: Message) -> str | None:
        """Hand a message over; None if it was taken, else what came instead."""
        ...


class AppriseChannel:
    """One URL. A message that hangs is left to its thread, and until that has ended the channel takes no other."""

    def __init__(self, name: str, target: Any, total_seconds: float = TOTAL_SECONDS) -> None:
        """`target`: apprise, with this one service."""
        self.name = name
        self._target = target
        self._total_seconds = total_seconds
        self._busy = False

    async def send(self, message: Message) -> str | None:
        """Hand a message over; None if it was taken, else what came instead."""
        if self._busy:
            return "the message before is still under way"
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str | None] = loop.create_future()

        def tell(told: str | None) -> None:
            self._busy = False
            if not answer.done():
                answer.set_result(told)

        def work() -> None:
            told = self._notify(message)
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(tell, told)

        # A daemon, since nothing breaks off a call that hangs, and the end of the process must not wait for it.
        self._busy = True
        threading.Thread(target=work, name=f"notify-{self.name}", daemon=True).start()
        try:
            return await asyncio.wait_for(answer, self._total_seconds)
        except TimeoutError:
            return f"no answer within {self._total_seconds:g} s"

    def _notify(self, message: Message) -> str | None:
        _log_of_apprise.begin()
        try:
            if self._target.notify(title=message.title, body=message.body, body_format="text"):
                return None
        except Exception as error:  # noqa: BLE001 - a service's code may raise anything, and its words may hold the URL
            return f"it failed ({type(error).__name__})"
        return _log_of_apprise.told()


class _StatusOnly(logging.Handler):
    """Takes apprise's log, of which each thread learns the status of an answer and nothing else gets out."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._local = threading.local()

    def begin(self) -> None:
        """Forget what this thread has heard."""
        self._local.told = "it was not taken"

    def emit(self, record: logging.LogRecord) -> None:
        """Hear a line."""
        text = record.getMessage()
        status = _STATUS.search(text)
        if status is not None:
            self._local.told = f"the service answered {status[1]}"
        elif "onnection error" in text:
            self._local.told = "the service could not be reached"

    def told(self) -> str:
        """Return what this thread has heard."""
        return str(self._local.told)


_log_of_apprise: Final = _StatusOnly()


def open_channels(urls: Sequence[str], setting: str, prefix: str = "") -> list[AppriseChannel]:
    """Make a channel of each URL, called by its scheme: slack, slack-2.

    Raises SettingsError where a URL is none that apprise knows, or apprise is missing; without telling the URL.
    """
    if not urls:
        return []
    try:
        apprise = importlib.import_module("apprise")
    except ModuleNotFoundError:
        raise SettingsError(f"{PREFIX}{setting} needs the extra: pip install 'order-gateway[notify]'") from None
    _keep_quiet()
    return list(_channels(apprise, urls, setting, prefix))


def _channels(apprise: Any, urls: Sequence[str], setting: str, prefix: str) -> Iterator[AppriseChannel]:
    # Each message goes out in the thread that hands it over. The end of the process would wait for apprise's own.
    asset = apprise.AppriseAsset(async_mode=False, service_timeout=0)
    counts: dict[str, int] = {}
    for number, url in enumerate(urls, 1):
        scheme = _SCHEME.match(url)
        target = apprise.Apprise(asset=asset)
        if scheme is None or not target.add(url):
            raise SettingsError(
                f"{PREFIX}{setting}: URL {number} is none of a service that apprise knows, or lacks a part"
            )
        kind = scheme[1].lower()
        counts[kind] = counts.get(kind, 0) + 1
        yield AppriseChannel(f"{prefix}{kind}" + (f"-{counts[kind]}" if counts[kind] > 1 else ""), target)


def _keep_quiet() -> None:
    """Let nothing of apprise and of what it calls reach the log: they write down the URLs that they call."""
    log = logging.getLogger("apprise")
    log.propagate = False
    if _log_of_apprise not in log.handlers:
        log.addHandler(_log_of_apprise)
    for library in ("urllib3", "requests"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
