"""The gateway's log: every line of a call carries its `request_id`."""

import logging

from common.logs import LogFormat, log_handler
from gateway.request_id import current_request_id


class _RequestId(logging.Filter):
    """Adds the name of the call being served."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take every record."""
        name = current_request_id()
        if name:
            record.request_id = name
        return True


class _ClientHasLeft(logging.Filter):
    """Drops grpc's tracebacks of answers that could not be sent because the client had left: nothing is wrong."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take every other record. The exception's class is private to grpc, so its name has to do."""
        error = record.exc_info[1] if record.exc_info else None
        return type(error).__name__ != "ExecuteBatchError"


def set_up_logs(style: LogFormat, level: str) -> None:
    """Send log lines to standard error, from `level` on."""
    handler = log_handler(style)
    handler.addFilter(_RequestId())
    handler.addFilter(_ClientHasLeft())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # These write down the URLs that they call, and those of callbacks and webhooks may hold a key.
    for library in ("httpx", "httpcore"):
        logging.getLogger(library).setLevel(logging.WARNING)
