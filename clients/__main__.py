"""Builds the example clients and runs them against the real programs: `python -m clients [LANGUAGE...]`.

Each client checks by itself, and ends with a line `N passed, 0 failed`. A language whose toolchain is missing is left
out with one line; with CI=true that fails, as it does where nothing could be run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clients.languages import LANGUAGES, Command, Language
from clients.stage import running_stage
from clients.workshop import ROOT, mirror, workshop
from common.output import say, standard_output
from demo.programs import ProgramError, end_on_signals
from worker.evidence.screenshots import PLAYWRIGHT_INSTALLED, find_chromium

FETCH_TRIES = 3
PAUSE_SECONDS = 10
COMMAND_SECONDS = 600
TOOLS = {
    # Halves what Maven and javac cost, which live for seconds.
    "MAVEN_OPTS": "-XX:TieredStopAtLevel=1",
    "CARGO_NET_RETRY": "5",
    "npm_config_fetch_retries": "5",
}


class ClientError(Exception):
    """A command failed, or a client said nothing of what it checked; the message is for people."""


@dataclass(slots=True)
class Count:
    """Checks that passed, languages that failed, and what was left out because something is missing."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


def run(command: Command, folder: Path, environment: Mapping[str, str]) -> str:
    """What a command writes. Raises ClientError with the end of it where it fails, or takes too long."""
    words = " ".join(command).replace(f"{ROOT}/", "")
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClientError(f"{words} took more than {COMMAND_SECONDS} s") from None
    if done.returncode:
        raise ClientError(f"{words} ended with status {done.returncode}:\n{done.stdout[-6000:].rstrip()}")
    return done.stdout


def fetch(command: Command, folder: Path, environment: Mapping[str, str]) -> None:
    """Runs a command that downloads, again where it fails. Raises ClientError when all tries have failed."""
    for left in reversed(range(FETCH_TRIES)):
        try:
            run(command, folder, environment)
        except ClientError as error:
            if not left:
                raise ClientError(f"what is pinned could not be had in {FETCH_TRIES} tries; {error}") from None
            time.sleep(PAUSE_SECONDS)
        else:
            return


def build(language: Language, folder: Path, environment: Mapping[str, str]) -> None:
    """Fetches what is pinned, generates, compiles and lints."""
    for command in language.fetch:
        fetch(command, folder, environment)
    for command in language.build:
        run(command, folder, environment)


def check(name: str, language: Language, folder: Path, environment: Mapping[str, str], count: Count) -> int:
    """Runs the programs of a language and says what each has checked; returns how many checks passed in all."""
    passed = 0
    for program in language.runs:
        if program.browser and not (PLAYWRIGHT_INSTALLED and find_chromium()):
            say(f"{name}: {program.name}: left out: there is no Chromium, or no Playwright")
            count.skipped += 1
            continue
        begun = time.monotonic()
        written = run(program.command, folder, environment)
        last = re.search(r"^(?:conformance: )?(\d+) passed, 0 failed$", written.rstrip().rpartition("\n")[2])
        if last is None or not int(last[1]):
            raise ClientError(f"{program.name} does not end with `N passed, 0 failed`:\n{written[-2000:]}")
        say(f"{name}: {program.name}: {last[1]} passed in {time.monotonic() - begun:.1f} s")
        passed += int(last[1])
    return passed


def serve(
    name: str, folder: Path, environment: Mapping[str, str] | None, tools: Mapping[str, str], count: Count
) -> None:
    """Builds one language and runs it, unless there is nothing to run it against; says what came of it."""
    language = LANGUAGES[name]
    if missing := [tool for tool in language.tools if not shutil.which(tool, path=tools["PATH"])]:
        say(f"{name}: left out: there is no {', no '.join(missing)} ({language.installed_by})")
        count.skipped += 1
        return
    home = folder / "clients" / name
    mirror(ROOT / "clients" / name, home)
    begun = time.monotonic()
    try:
        build(language, home, tools)
        built = time.monotonic() - begun
        if environment is None:
            say(f"{name}: built in {built:.1f} s")
            return
        passed = check(name, language, home, {**tools, **environment}, count)
    except ClientError as error:
        say(f"{name}: failed: {error}")
        count.failed += 1
        return
    count.passed += passed
    say(f"{name}: {passed} passed, 0 failed (built in {built:.1f} s, run in {time.monotonic() - begun - built:.1f} s)")


def main() -> int:
    """Runs what the command line names; the exit status is 0 only if something passed and nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m clients", description="Builds and runs the example clients.")
    parser.add_argument(
        "languages", nargs="*", metavar="LANGUAGE", help=f"of {', '.join(LANGUAGES)}; all if none is named"
    )
    parser.add_argument("--contract", type=Path, default=ROOT / "proto", help="folder with the contract to build with")
    parser.add_argument("--build-only", action="store_true", help="start nothing, run nothing")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.languages if name not in LANGUAGES]:
        parser.error(f"no client in {', '.join(unknown)}; there are {', '.join(LANGUAGES)}")
    end_on_signals()
    names, count = arguments.languages or list(LANGUAGES), Count()
    tools = {**os.environ, **TOOLS, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with workshop(arguments.contract) as folder:
        if arguments.build_only:
            for name in names:
                serve(name, folder, None, tools, count)
            return 1 if count.failed or count.skipped else 0
        if not shutil.which("openssl"):
            say("clients: there is no openssl, which makes the certificates")
            return 1
        with (
            tempfile.TemporaryDirectory(prefix="order-gateway-clients-") as parts,
            running_stage(Path(parts)) as environment,
        ):
            for name in names:
                serve(name, folder, environment, tools, count)
    say(f"clients: {count.passed} passed, {count.failed} failed, {count.skipped} skipped")
    left_out = count.skipped and os.environ.get("CI") == "true"
    return 1 if count.failed or left_out or not count.passed else 0


if __name__ == "__main__":
    with standard_output("clients"):
        try:
            sys.exit(main())
        except ProgramError as error:
            sys.exit(f"clients: {error}")
        except KeyboardInterrupt:
            say("clients: interrupted; everything that was started was stopped")
            sys.exit(130)
