"""A `.env` that cannot be read, or of which a line says nothing, told in one line before a library meets it.

The library would leave such a line out, and the default would stand in its place.
"""

import io
from pathlib import Path
from typing import Final

from dotenv.parser import parse_stream

ENV_FILE: Final = Path(".env")
_PREFIX: Final = "RAKUTEN_"
"""Names of ours. Others may stand in the file, too, and are whoever's they are."""


def fault_of_env_file(path: Path = ENV_FILE) -> str | None:
    """Return what keeps the file from being read as `NAME=value` lines; None where it can be, or is not there."""
    try:
        if path.is_dir():
            return f"{path.absolute()} is a folder; move it away, or start the command in another folder"
        if not path.exists():
            return None
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"{path}, line {line}: the byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
    except OSError as error:
        return (
            f"{path.absolute()} cannot be read ({error.strerror}); let the account that the command "
            "runs as read it, or start the command in a folder of its own"
        )
    if text.startswith("\ufeff"):
        return f"{path} begins with a byte order mark, which would hide its first setting; save it as UTF-8 without one"
    for found in parse_stream(io.StringIO(text)):
        lacks_value = found.key is not None and found.key.upper().startswith(_PREFIX) and found.value is None
        if found.error or lacks_value:
            written = found.original.string
            line = found.original.line + written[: len(written) - len(written.lstrip())].count("\n")
            return f"{path}, line {line}: it is no NAME=value; write one a line, a value with spaces in quotes"
    return None
