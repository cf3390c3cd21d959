"""A small stand-in for `systemctl`, where systemd does not run: it reads the real units and runs the real programs.

It honours what decides whether a service works: User, Group, SupplementaryGroups, EnvironmentFile, Environment,
WorkingDirectory, StateDirectory, UMask, ExecStartPre (also with +), ExecStart, Type (notify, exec, oneshot), Requisite,
Conflicts and WantedBy. A unit with a directive that it does not know is refused; what only takes rights away (the
sandbox) is known and left out.
It keeps a process number and a log for each service in /run/stand-in.
"""

import grp
import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

UNITS = Path("/etc/systemd/system")
STATE = Path("/run/stand-in")
START_SECONDS = 90.0
HONOURED = {
    "User",
    "Group",
    "SupplementaryGroups",
    "EnvironmentFile",
    "Environment",
    "WorkingDirectory",
    "StateDirectory",
    "StateDirectoryMode",
    "UMask",
    "ExecStartPre",
    "ExecStart",
    "Type",
    "Requisite",
    "Conflicts",
    "WantedBy",
}
LEFT_OUT = {
    "Description",
    "Wants",
    "After",
    "StartLimitIntervalSec",
    "StartLimitBurst",
    "Restart",
    "RestartSec",
    "RestartPreventExitStatus",
    "TimeoutStopSec",
    "TimeoutStartSec",
    "KillSignal",
    "NoNewPrivileges",
    "CapabilityBoundingSet",
    "AmbientCapabilities",
    "ProtectSystem",
    "ProtectHome",
    "ProtectProc",
    "ProtectClock",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "ProtectControlGroups",
    "PrivateTmp",
    "PrivateDevices",
    "PrivateUsers",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "RemoveIPC",
    "SystemCallArchitectures",
    "SystemCallFilter",
    "SystemCallErrorNumber",
    "LimitNOFILE",
    "MemoryMax",
    "OnCalendar",
    "RandomizedDelaySec",
    "Persistent",
}

Unit = dict[str, list[str]]


def full(name: str) -> str:
    return name if name.endswith((".service", ".timer")) else f"{name}.service"


def load(name: str) -> Unit:
    """A unit's directives, `%i` filled in; a template's file is that of its instances."""
    template, _, instance = name.removesuffix(".service").partition("@")
    path = UNITS / (f"{template}@.service" if "@" in name else name)
    if not path.is_file():
        sys.exit(f"Unit {name} not found.")
    unit: Unit = {}
    for line in path.read_text().splitlines():
        key, equals, value = line.partition("=")
        if not equals or line.startswith(("#", ";")):
            continue
        if key not in HONOURED | LEFT_OUT:
            sys.exit(f"the stand-in does not know {key}= of {path}")
        unit.setdefault(key, []).append(value.replace("%i", instance))
    return unit


def one(unit: Unit, key: str, default: str = "") -> str:
    return unit.get(key, [default])[-1]


def environment(unit: Unit) -> dict[str, str]:
    """What systemd.exec(5) gives a service: a clean environment, then Environment=, then EnvironmentFile=."""
    user = pwd.getpwnam(one(unit, "User", "root"))
    told = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8", "USER": user.pw_name}
    told |= {"HOME": user.pw_dir, "LOGNAME": user.pw_name, "SHELL": user.pw_shell}
    told |= dict(pair.split("=", 1) for value in unit.get("Environment", []) for pair in shlex.split(value))
    for file in unit.get("EnvironmentFile", []):
        for line in Path(file).read_text().splitlines():
            if line.strip() and not line.startswith(("#", ";")):
                name, _, value = line.partition("=")
                told[name.strip()] = "".join(shlex.split(value)) if re.search(r"[\"'\\]", value) else value.strip()
    return told


def pid_of(name: str) -> int | None:
    try:
        number = int((STATE / f"{name}.pid").read_text())
        os.kill(number, 0)
    except (OSError, ValueError):
        return None
    return number


def is_active(name: str) -> bool:
    return (STATE / f"{name}.active").exists() if name.endswith(".timer") else pid_of(name) is not None


def start(name: str) -> None:
    unit = load(name)
    if name.endswith(".timer"):
        (STATE / f"{name}.active").touch()
        return
    for other in one(unit, "Conflicts").split():
        stop(full(other))
    for other in one(unit, "Requisite").split():
        if not is_active(full(other)):
            sys.exit(f"Dependency failed for {name}: {other} is not active.")
    if is_active(name):
        return
    make_state_directory(unit)
    kind, listening = one(unit, "Type", "simple"), None
    settings = environment(unit)
    if kind == "notify":
        settings["NOTIFY_SOCKET"] = f"@stand-in/{name}"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listening.bind(f"\0stand-in/{name}")
    for first in unit.get("ExecStartPre", []):
        before = run(name, unit, first, settings)
        if before.wait() != 0:
            sys.exit(f"Job for {name} failed because {first} ended with {before.poll()}. See journalctl -u {name}.")
    process = run(name, unit, one(unit, "ExecStart"), settings)
    (STATE / f"{name}.pid").write_text(str(process.pid))
    if kind == "oneshot":
        failed = process.wait() != 0
    else:
        failed = listening is not None and not became_ready(process, listening)
    if failed:
        sys.exit(f"Job for {name} failed because the process ended with {process.poll()}. See journalctl -u {name}.")


def run(name: str, unit: Unit, command: str, settings: dict[str, str]) -> "subprocess.Popen[bytes]":
    """A command of the unit; one that begins with + runs as root, as systemd.service(5) has it."""
    privileged = command.startswith("+")
    with (STATE / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            shlex.split(command.removeprefix("+")),
            cwd=one(unit, "WorkingDirectory", "/"),
            env=dict(os.environ) if privileged else settings,
            user="root" if privileged else one(unit, "User", "root"),
            group=None if privileged else one(unit, "Group") or None,
            extra_groups=[] if privileged else groups(unit),
            umask=int(one(unit, "UMask", "0022"), 8),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def became_ready(process: "subprocess.Popen[bytes]", listening: socket.socket) -> bool:
    listening.settimeout(0.1)
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            return b"READY=1" in listening.recv(4096)
        except TimeoutError:
            continue
    return False


def groups(unit: Unit) -> list[str]:
    user = one(unit, "User", "root")
    return [group.gr_name for group in grp.getgrall() if user in group.gr_mem] + one(
        unit, "SupplementaryGroups"
    ).split()


def make_state_directory(unit: Unit) -> None:
    for name in one(unit, "StateDirectory").split():
        user, folder = pwd.getpwnam(one(unit, "User", "root")), Path("/var/lib") / name
        folder.mkdir(exist_ok=True)
        folder.chmod(int(one(unit, "StateDirectoryMode", "0755"), 8))
        os.chown(folder, user.pw_uid, user.pw_gid)


def stop(name: str) -> None:
    (STATE / f"{name}.active").unlink(missing_ok=True)
    number = pid_of(name)
    if number is None:
        return
    os.kill(number, signal.SIGTERM)
    until = time.monotonic() + 20  # TimeoutStopSec=
    while pid_of(name) is not None:
        if time.monotonic() > until:
            os.kill(number, signal.SIGKILL)
        time.sleep(0.02)


def enable(name: str) -> None:
    for target in one(load(name), "WantedBy").split():
        wants = UNITS / f"{target}.wants"
        wants.mkdir(exist_ok=True)
        (wants / name).unlink(missing_ok=True)
        (wants / name).symlink_to(UNITS / name)


def main(verb: str, *names: str) -> None:
    STATE.mkdir(exist_ok=True)
    units = [full(name) for name in names if not name.startswith("-")]
    if verb == "daemon-reload":
        for path in UNITS.glob("order-*"):
            load(path.name)
    elif verb == "enable":
        for name in units:
            enable(name)
            if "--now" in names:
                start(name)
    elif verb == "restart":
        for name in units:
            stop(name)
            start(name)
    elif verb in ("start", "stop"):
        for name in units:
            (start if verb == "start" else stop)(name)
    elif verb == "is-active":
        sys.exit(not all(map(is_active, units)))
    else:
        sys.exit(f"the stand-in does not know systemctl {verb}")


if __name__ == "__main__":
    main(*sys.argv[1:])
