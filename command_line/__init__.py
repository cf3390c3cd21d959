"""What `order-gateway` and `order-worker` have in common as commands: how they print, and what they end with.

Imported before gRPC, which reads its log level once: what it says of a failed handshake would stand beside the one line
that a command ends with.
"""

import os

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
