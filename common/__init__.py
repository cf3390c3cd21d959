"""What `order-gateway` and `order-worker` have in common as commands: how they print, and what they end with.

Imported before gRPC, which reads its log level once. It writes to standard error, past the log: its words on a failed
handshake would stand beside the one line that a command ends with, and the server name that a stranger sent to the
gateway's port, line breaks included, would forge lines there.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
