"""A machine of its own for one test: a root shell in private namespaces, over a copy-on-write view of this machine.

Nothing of this machine is changed: whatever the shell writes goes into a temporary file system that is gone with the
shell, its network is a loopback of its own (so that the documented ports are free), and all its processes end with it.
Stand-ins, in /stand-ins, first on the PATH, where a real machine would go out into the world:

- `systemctl` (systemctl.py): reads the real units and runs the real programs;
- `python3 -m venv` makes an environment that holds what this one holds, and its `pip` installs nothing but checks what
  it is asked for, since a test downloads nothing.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.optional_parts import where_is

ROOT = Path(__file__).parents[2]
NEEDED = ("unshare", "mount", "chroot", "setpriv", "useradd", "openssl", "curl", "git", "bash", "ip")
SYSTEM_PATH = "/stand-ins:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_STAND_INS = {
    "systemctl": f'#!/bin/sh\nexec {sys.executable} /stand-ins/systemctl.py "$@"\n',
    "python3": f"""#!/bin/sh
[ "$*" = "-m venv .venv" ] && exec cp -a /stand-ins/venv .venv
exec {sys.executable} "$@"
""",
    "venv/bin/pip": """#!/bin/sh
case "$*" in
    --version) ;;
    "install --quiet --require-hashes -r requirements/"*) grep -q -- --hash=sha256: "$5" ;;
    "install --quiet --no-deps --no-build-isolation ./clients/python .") [ -f clients/python/pyproject.toml ] ;;
    *) echo "the stand-in for pip does not know: $*" >&2; exit 1 ;;
esac
""",
    **{
        f"venv/bin/order-{name}": f"#!/opt/order-gateway/.venv/bin/python\nfrom {name}.cli import main\n\nmain()\n"
        for name in ("gateway", "worker")
    },
}

_ENTER = """
set -eu
mount --make-rprivate /
mount -t tmpfs machine "$BOX"
mkdir "$BOX/upper" "$BOX/work" "$BOX/root"
mount -t overlay machine -o "lowerdir=/,upperdir=$BOX/upper,workdir=$BOX/work" "$BOX/root"
mount --rbind /dev "$BOX/root/dev"
mount -t proc proc "$BOX/root/proc"
for path in /tmp /run; do mount -t tmpfs machine "$BOX/root$path"; chmod 1777 "$BOX/root$path"; done
for path in $VISIBLE; do
    [ -e "$BOX/root$path" ] || { mkdir -p "$BOX/root$path"; mount --bind "$path" "$BOX/root$path"; }
    while [ "$path" != / ]; do chmod go+rx "$BOX/root$path"; path=$(dirname "$path"); done
done
rm -rf "$BOX/root"/opt/order-gateway "$BOX/root"/etc/order-gateway "$BOX/root"/var/lib/order-* \
    "$BOX/root"/etc/systemd/system/order-* "$BOX/root"/usr/local/sbin/order-*
mkdir -p "$BOX/root/opt" "$BOX/root/etc/systemd/system" "$BOX/root/var/lib" "$BOX/root/stand-ins" "$BOX/root/source"
cp -a "$STAND_INS/." "$BOX/root/stand-ins"
cp -a "$SOURCE/." "$BOX/root/source"
printf '127.0.0.1 localhost gateway.example\\n' > "$BOX/root/etc/hosts"
ip link set lo up
cd "$BOX/root"
exec chroot . /usr/bin/env -i PATH="$SYSTEM_PATH" HOME=/root TERM=dumb LANG=C.UTF-8 bash --noprofile --norc
"""


def can_make_a_machine() -> bool:
    """Whether this account may, and has the programs for it."""
    if os.geteuid() != 0 or any(where_is(name) is None for name in NEEDED):
        return False
    with tempfile.TemporaryDirectory() as box:
        tried = subprocess.run(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c", _TRY],
            env={"PATH": os.environ["PATH"], "BOX": box},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    return tried.returncode == 0


_TRY = (
    'mount -t tmpfs machine "$BOX" && cd "$BOX" && mkdir u w r && '
    "mount -t overlay machine -o lowerdir=/,upperdir=u,workdir=w r"
)


@dataclass(frozen=True)
class Typed:
    """What a block of commands printed (both outputs), and what its last one ended with."""

    block: str
    out: str
    code: int


class Machine:
    """A root shell, in which blocks are typed one after the other."""

    def __init__(self, shell: "subprocess.Popen[str]") -> None:
        self._shell = shell

    def types(self, block: str) -> Typed:
        """Type a block, line by line as a shell reads it."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        mark = uuid.uuid4().hex
        self._shell.stdin.write(f"{{\n{block}\n}} < /dev/null 2>&1\nprintf '\\n{mark} %s\\n' $?\n")
        self._shell.stdin.flush()
        said: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(mark):
                return Typed(block, "".join(said).removesuffix("\n"), int(line.split()[1]))
            said.append(line)
        raise AssertionError(f"the shell ended in: {block}\n{''.join(said)}")

    def must(self, block: str) -> str:
        """Type a block of which every command has to succeed, and return what it printed; the shell stays as it was."""
        typed = self.types(f"(\nset -e\n{block}\n)")
        assert typed.code == 0, f"{typed.block}\n{typed.out}"
        return typed.out

    def background(self, command: str) -> str:
        """Start a program in a terminal of its own, and return its process number; what it prints is kept in /run."""
        log = f"/run/{uuid.uuid4().hex}.log"
        return self.must(f"(exec {command}\n) > {log} 2>&1 < /dev/null &\necho $!").strip()

    def until(self, words: str, seconds: float = 60) -> str:
        """Wait until a program that was started in this shell prints that, and return what was printed meanwhile."""
        said, end = "", time.monotonic() + seconds
        while words not in said:
            assert time.monotonic() < end, f"{words!r} was not said: {said}"
            said += self.types("sleep 0.1").out
        return said


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """A new machine; it and all that runs on it is gone at the end."""
    stand_ins, source, box = folder / "stand-ins", folder / "source", folder / "box"
    box.mkdir()
    _make_stand_ins(stand_ins)
    _copy_tree(source)
    visible = [str(Path(sys.base_prefix)), sysconfig.get_path("purelib"), str(Path(sys.executable).parent)]
    shell = subprocess.Popen(
        ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER],
        env={
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
            "BOX": str(box),
            "STAND_INS": str(stand_ins),
            "SOURCE": str(source),
            "VISIBLE": " ".join(map(shlex.quote, visible)),
            "SYSTEM_PATH": SYSTEM_PATH,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        bufsize=1,
    )
    try:
        yield Machine(shell)
    finally:
        shell.kill()
        shell.communicate()


def _make_stand_ins(folder: Path) -> None:
    packages = folder / "venv" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    paths = ("/opt/order-gateway", "/opt/order-gateway/clients/python", sysconfig.get_path("purelib"))
    (packages / "of-the-test.pth").write_text("".join(f"{path}\n" for path in paths))
    (folder / "venv" / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    (folder / "venv" / "bin").mkdir()
    (folder / "venv" / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    for name, text in _STAND_INS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    shutil.copy(Path(__file__).with_name("systemctl.py"), folder)


def _copy_tree(source: Path) -> None:
    """What is committed here or about to be, as a repository that can be cloned."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    for words in ("init -q -b main", "add -A", "-c user.name=t -c user.email=t@example.com commit -q -m tree"):
        subprocess.run(["git", *words.split()], cwd=source, check=True)
