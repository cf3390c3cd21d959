"""What a test may need beyond Python and make, how it says so, and how all of it is hidden.

A test names its parts: `@pytest.mark.needs("chromium", "fonts")`. Where one is missing it is skipped and says why; with
CI=true it fails instead. HIDE_OPTIONAL=1 makes every part missing, in CI too, so that the suite runs as a newcomer has
it: a test that uses a part without naming it fails then.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

BESIDE_THE_PATH = (
    "/usr/sbin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
    *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)),
)
"""Where servers lie that are on the PATH of root alone, or of nobody."""


@dataclass(frozen=True)
class Part:
    """Something optional. `missing`: what is said where it is not there. `programs`: what hiding takes off the PATH."""

    missing: str
    is_there: Callable[[], bool]
    programs: tuple[str, ...] = ()


def where_is(program: str) -> str | None:
    """The path of a program; None where it is missing or hidden."""
    beside = () if are_hidden() else BESIDE_THE_PATH
    return shutil.which(program, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *beside)))


def _program(*names: str) -> Part:
    words = " or no ".join(names)
    return Part(f"there is no {words} on this machine", lambda: all(map(where_is, names)), names)


def _has_chromium() -> bool:
    from worker.evidence.screenshots import PLAYWRIGHT_INSTALLED, find_chromium  # noqa: PLC0415 - Playwright takes its time

    return PLAYWRIGHT_INSTALLED and find_chromium() is not None


def _has_japanese_font() -> bool:
    if where_is("fc-list") is None:
        return False
    fonts = subprocess.run(["fc-list", ":lang=ja"], capture_output=True, text=True, check=False)
    return fonts.returncode == 0 and fonts.stdout != ""


def _has_postgresql() -> bool:
    programs = ("initdb", "postgres", *(("setpriv",) if os.geteuid() == 0 else ()))
    return find_spec("psycopg") is not None and all(where_is(program) for program in programs)


def _has_peers() -> bool:
    return all(find_spec(name) is not None for name in ("asyncpg", "pgqueuer", "procrastinate"))


def _has_history() -> bool:
    from tests.gateway.support.former import commit_of_schema  # noqa: PLC0415 - as for mounting

    return where_is("git") is not None and commit_of_schema(11) is not None


def _may_mount() -> bool:
    from tests.faults.disks import can_mount  # noqa: PLC0415 - it mounts, so only where a test asks

    return can_mount()


def _may_make_a_machine() -> bool:
    from tests.deploy.machine import can_make_a_machine  # noqa: PLC0415 - as for mounting

    return can_make_a_machine()


PARTS = {
    "cargo": _program("cargo"),
    "chromium": Part(
        "Chromium or Playwright is not installed",
        _has_chromium,
        ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    ),
    "fonts": Part("no Japanese font is installed", _has_japanese_font, ("fc-list",)),
    "git": _program("git"),
    "go": _program("go"),
    "grpc++": _program("cmake", "ninja", "protoc", "grpc_cpp_plugin"),
    "history": Part("the history of this tree is not here, or is cut short", _has_history),
    "machine": Part("a machine of its own takes root, namespaces, and the programs of a server", _may_make_a_machine),
    "maven": _program("java", "mvn"),
    "mount": Part("this account may not mount a file system", _may_mount),
    "nginx": _program("nginx"),
    "node": _program("node", "npm"),
    "openssl": _program("openssl"),
    "peers": Part("the queues of requirements/peers.txt are not installed", _has_peers),
    "pgbouncer": _program("pgbouncer"),
    "postgresql": Part("PostgreSQL or psycopg is not installed", _has_postgresql, ("initdb", "postgres", "pg_ctl")),
    "systemd": Part("there is no systemd here", lambda: where_is("systemd-analyze") is not None, ("systemd-analyze",)),
}


OF_FIXTURES = {"certificates": "openssl"}
"""What a test needs with a fixture; it does not have to say so again."""


def are_hidden() -> bool:
    """Whether every part counts as missing."""
    return os.environ.get("HIDE_OPTIONAL", "") not in {"", "0"}


@cache
def _is_there(name: str) -> bool:
    return PARTS[name].is_there()


def missing_part(name: str) -> str | None:
    """Why a part cannot be used; None if it can."""
    if are_hidden():
        return f"{name} is hidden by HIDE_OPTIONAL"
    return None if _is_there(name) else PARTS[name].missing


def missing_for(item: pytest.Item) -> str | None:
    """Why a test cannot run here; None if it can. Raises UsageError where it names a part that nobody knows."""
    names = [name for mark in item.iter_markers("needs") for name in mark.args]
    names += [OF_FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in OF_FIXTURES]
    if unknown := sorted(set(names) - PARTS.keys()):
        raise pytest.UsageError(f"{item.nodeid} needs {', '.join(unknown)}; known are {', '.join(sorted(PARTS))}")
    return "; ".join(reason for name in dict.fromkeys(names) if (reason := missing_part(name))) or None


@contextmanager
def hidden() -> Iterator[None]:
    """Take the optional programs off the PATH of this process and of all that it starts."""
    programs = {program for part in PARTS.values() for program in part.programs}
    path = os.environ.get("PATH", os.defpath)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="path-") as mirrors:
        folders = [
            _without(programs, Path(folder), Path(mirrors) / str(number))
            for number, folder in enumerate(path.split(os.pathsep))
        ]
        patch.setenv("PATH", os.pathsep.join(folders))
        patch.setattr("worker.evidence.screenshots.KNOWN_PATHS", ())
        yield


def _without(programs: set[str], folder: Path, mirror: Path) -> str:
    """A folder with what this one has but these programs; the folder itself where it has none of them."""
    if not any((folder / program).exists() for program in programs):
        return str(folder)
    mirror.mkdir()
    for program in folder.iterdir():
        if program.name not in programs:
            (mirror / program.name).symlink_to(program)
    return str(mirror)
