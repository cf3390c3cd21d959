"""docs/cli.md and docs/runbook.md say what the program does: every command, every exit code, every alert."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

from common.exit_codes import MEANINGS
from gateway.cli import app
from gateway.cli.exit_codes import EPILOG
from gateway.domain.models import AlertKind
from tests.gateway.cli.command import Commands
from tests.gateway.support.grpc_api import GrpcApi

DOCS = Path(__file__).parents[3] / "docs"


def names_of(group: TyperGroup, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            if command.invoke_without_command:
                yield f"{before}{name}"
            yield from names_of(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def program() -> set[str]:
    made = typer.main.get_command(app)
    assert isinstance(made, TyperGroup)
    return set(names_of(made))


def test_every_command_is_in_the_list_and_no_other() -> None:
    section = (DOCS / "cli.md").read_text().partition("## Commands")[2]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    told = {re.sub(r" (?:--\w+ )?[A-Z[].*", "", word) for cell in cells for word in re.findall(r"`([^`]+)`", cell)}
    assert told == program()


def test_exit_codes() -> None:
    section = (DOCS / "cli.md").read_text().partition("## Exit codes")[2].partition("## ")[0]
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", section, re.MULTILINE))
    assert rows == {str(code.value): meaning for code, meaning in MEANINGS.items()}
    assert EPILOG.startswith("Exit codes: 0 done; 1 a fault")


def test_every_alert_has_its_part() -> None:
    text = (DOCS / "runbook.md").read_text()
    for kind in AlertKind:
        part = text.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
        for word in ("**It means**", "**Check**", "**Do**"):
            assert word in part, (kind, word)
        assert f"| [`{kind}`](#{kind}) |" in text


def test_every_command_of_the_runbook_exists() -> None:
    text = (DOCS / "runbook.md").read_text()
    typed = re.findall(r"order-gateway ((?:[a-z]+ ?)+)", text)
    known = program()
    for words in typed:
        first, _, second = words.strip().partition(" ")
        assert first in known or f"{first} {second.split(' ')[0]}" in known, words


@pytest.mark.sqlite
async def test_the_commands_of_the_runbook_that_fit_any_time_work_as_printed(api: GrpcApi, commands: Commands) -> None:
    """Whatever only looks, pauses or backs up; the others are followed end to end."""
    await api.submit("po-1042")
    typed = re.findall(r"^order-gateway (.*)$", (DOCS / "runbook.md").read_text(), re.MULTILINE)
    fits = re.compile(
        r"pause|resume|alerts(?! clear)|decisions|tasks (list|show)|events|health|workers list|callbacks|backup|cancel"
    )
    lines = list(dict.fromkeys(line for line in typed if fits.match(line)))
    assert len(lines) >= 14
    assert lines[0].startswith("pause")
    for line in sorted(lines, key=lambda line: line.startswith("cancel")):
        await commands.ok(*shlex.split(line))
