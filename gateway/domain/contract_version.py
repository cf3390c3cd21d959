"""Which contract this gateway speaks, for clients that ask before they rely on a field (docs/protocol.md#versions)."""

from typing import Final

CONTRACT_VERSION: Final = "1.1"
"""MAJOR.MINOR of the contract in `proto/`. A field that an older gateway ignores makes a new minor version."""
