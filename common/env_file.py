"""A `.env` that cannot be read, told in one line before a library meets it."""

from pathlib import Path
from typing import Final

ENV_FILE: Final = Path(".env")


def fault_of_env_file(path: Path = ENV_FILE) -> str | None:
    """Return what keeps the file from being read as UTF-8 text; None where it can be read, or is not there."""
    try:
        if path.is_file():
            path.read_bytes().decode()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"{path}, line {line}: the byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
    except OSError as error:
        return f"{path} cannot be read ({error.strerror}); start the command in a folder that it may look into"
    return None
