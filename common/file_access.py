"""What keeps a process from using a file, told from what lies on the disk: which folder or file, whose, what to do."""

import os
import pwd
from pathlib import Path


def next_step(path: Path) -> str:
    """Return what to do so that this process can read and write a file, as words to append; "" where it could."""
    place = path.absolute()
    for folder in reversed(place.parents):
        if not os.path.lexists(folder):
            return f"; the folder {folder} is not there: make it, or put the path right"
        if not folder.is_dir():
            return f"; {folder} is no folder: put the path right"
        # Writing is for what comes to lie beside the file, too: locks, and the logs of a database.
        if not os.access(folder, os.X_OK | os.W_OK if folder == place.parent else os.X_OK):
            return _not_ours(folder)
    if place.is_dir():
        return f"; {place} is a folder: name a file in it"
    return "" if not place.exists() or os.access(place, os.R_OK | os.W_OK) else _not_ours(place)


def _not_ours(place: Path) -> str:
    if os.statvfs(place).f_flag & os.ST_RDONLY:
        return f"; {place} lies on a file system that is mounted read-only: mount it for writing, or name another place"
    found = place.stat()
    if found.st_uid == os.geteuid():
        return f"; the mode {found.st_mode & 0o7777:04o} of {place} does not allow it: chmod u+rwX {place}"
    owner, ours = _name(found.st_uid), _name(os.geteuid())
    return f"; {place} belongs to {owner}, and this runs as {ours}: run it as {owner}, or chown {ours} {place}"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # an account without a name
        return f"uid {uid}"
