"""Telling systemd that a service is ready (sd_notify(3)); where nobody asks for it, nothing is told."""

import os
import socket


def tell_ready() -> None:
    """Say that the service is ready. Raises OSError if whoever asked to be told cannot be."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        # A name that begins with @ is one of the abstract names, which begin with a null byte.
        manager.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        manager.send(b"READY=1")
