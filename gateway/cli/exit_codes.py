"""The exit codes that `order-gateway` uses, and the sentence about them that closes its --help."""

from typing import Final

from common.exit_codes import Exit, epilog

CODES: Final = (
    Exit.DONE,
    Exit.FAULT,
    Exit.USAGE,
    Exit.DATABASE,
    Exit.REFUSED,
    Exit.NOT_FOUND,
    Exit.UNREACHABLE,
    Exit.DENIED,
    Exit.STILL_WAITING,
)

EPILOG: Final = epilog(CODES)
