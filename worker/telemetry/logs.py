"""The worker's log: its own lines from the configured level on, warnings of everybody else."""

import logging

from common.logs import LogFormat, log_handler


def configure_logging(log_format: LogFormat, level: str) -> None:
    """Send the log to standard error, in that format, from that level on."""
    root = logging.getLogger()
    root.handlers[:] = [log_handler(log_format)]
    root.setLevel(logging.WARNING)
    logging.getLogger("worker").setLevel(level)
    # It tells of an answer that is no message with a traceback; whoever asked tells it in a line (gateway/answers.py).
    logging.getLogger("grpc._common").setLevel(logging.CRITICAL)
