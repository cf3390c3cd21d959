"""The process that reads pages: `python -m worker.sites.page_process CPU_SECONDS MEBIBYTES`.

A page is what somebody else wrote, and a parser may take minutes and gigabytes over 40 KiB of it. So it is parsed here,
where the kernel ends it: after so many seconds of CPU for one page (SIGPROF, which nothing handles), and at so much
memory. It holds nothing that is worth keeping, reads its orders from standard input and ends with it.

Both ways go frames of a big-endian 32-bit length and as many bytes. An order is two frames: JSON with `module` and
`name` of the reading function, its further `args`, and the page's `url`, `method` and `http_status`; then the page. The
answer is one frame of JSON: `{"value": …}`, `{"changed": why it cannot be read, "error_code": …}`, or `{"fault": …}`.
"""

import importlib
import json
import resource
import signal
import struct
import sys
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, BinaryIO

from selectolax.lexbor import SelectolaxError

from worker.sites.port import Page, PageChangedError

MAX_ANSWER_BYTES = 1024 * 1024
"""The caller decodes the answer in its event loop, so it must be small."""

LENGTH = struct.Struct(">I")


def main() -> None:
    """Read pages until standard input ends."""
    cpu_seconds, mebibytes = float(sys.argv[1]), int(sys.argv[2])
    # A stop goes to the whole process group, and the worker may need a page read while it brings a click to its end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    while (order := _frame(orders)) is not None:
        html = _frame(orders) or b""
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        answer = answer_to(json.loads(order), html)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


def _frame(stream: BinaryIO) -> bytes | None:
    """Return the next frame; None where the stream ends, within a frame too."""
    length = stream.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(length)
    frame = stream.read(size)
    return frame if len(frame) == size else None


def answer_to(order: dict[str, Any], html: bytes) -> bytes:
    """Return the answer to one order, as JSON of at most MAX_ANSWER_BYTES. Raises nothing."""
    page = Page(order["url"], order["method"], order["http_status"], html)
    try:
        reading = getattr(importlib.import_module(order["module"]), order["name"])
        answer = _to_json({"value": reading(page, *order["args"])})
    except PageChangedError as error:
        answer = _to_json({"changed": str(error), "error_code": error.error_code})
    except (MemoryError, SelectolaxError, RecursionError, ValueError) as error:
        # The parser's own word for a page that does not fit into the memory is SelectolaxError.
        answer = _to_json({"changed": f"the page {page.url} cannot be read: {error or type(error).__name__}"})
    except Exception as error:  # noqa: BLE001 -- a fault of a reading function is the caller's to tell
        answer = _to_json({"fault": repr(error)})
    if len(answer) > MAX_ANSWER_BYTES:
        return _to_json({"changed": f"the page {page.url} holds more than can be read"})
    return answer


def _to_json(value: Any) -> bytes:
    """UTF-8; a lone surrogate, which a page can bring in as an escape of JSON, becomes a question mark."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no form in JSON")


if __name__ == "__main__":
    main()
