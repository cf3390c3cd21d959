"""Texts from outside that would forge a line of the log, or steer the terminal on which it is read."""

import asyncio
import json
import logging
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import common.output
import gateway.cli
import gateway.logs
import worker.cli.app
from common.exit_codes import CommandError, Exit
from common.logs import JsonFormatter, TextFormatter
from common.program import Program
from common.tables import print_table
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.rest_api import data_of, lease, post, rest_client, submit

FORGED = "2026-11-30T00:00:00.000Z ERROR   FORGED"
TEXTS = {
    "line feed": f"x\n{FORGED}\x1b[2J",
    "carriage return": f"x\r{FORGED}",
    "both": f"x\r\n{FORGED}",
    "next line": f"x\x85{FORGED}",
    "line separator": f"x\u2028{FORGED}",
    "paragraph separator": f"x\u2029{FORGED}",
    "vertical tab, form feed": f"x\v{FORGED}\f{FORGED}",
    "separators of ASCII": f"x\x1c{FORGED}\x1d\x1e",
    "clear the screen": "\x1b[2J\x1b[H",
    "the same in C1": "\x9b2J",
    "set the title": "\x1b]0;owned\x07",
    "erase what was said": "all is well\b\b\b\x7f",
    "NUL": "a\0b",
    "turned round": "\u202edlrow olleh\u202c \u2066x\u2069 \u200e\u200f\u061c",
    "half a character": "\ud800",
    "a field of the log": 'x task_id=po-2 "',
}
FORMATTERS: dict[str, Callable[[], logging.Formatter]] = {
    "text": TextFormatter,
    "json": JsonFormatter,
}


def is_harmless(line: str) -> bool:
    """Whether a line holds no control, no separator of lines, no mark of bidirectional text, no half character."""
    harmful = {"Cc", "Zl", "Zp", "Cs"}
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    marks = "\u200e\u200f\u061c"
    return not any(
        unicodedata.category(each) in harmful or unicodedata.bidirectional(each) in bidi or each in marks
        for each in line
    )


def logged(formatter: logging.Formatter, message: str, **more: object) -> str:
    record = logging.makeLogRecord({"name": "x", "levelname": "INFO", "msg": "it said %s", "args": (message,)})
    vars(record).update(more)
    return formatter.format(record)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("form", FORMATTERS)
def test_a_text_stays_within_its_line(form: str, text: str) -> None:
    formatter, given = FORMATTERS[form](), TEXTS[text]
    for line in (logged(formatter, given), logged(formatter, "x", detail=given)):
        assert is_harmless(line), line
        assert len(line.splitlines()) == 1
    if form.endswith("json"):
        assert json.loads(logged(formatter, given))["message"] == f"it said {given}"
        assert json.loads(logged(formatter, "x", detail=given))["detail"] == given


@pytest.mark.parametrize("form", FORMATTERS)
def test_what_people_write_stays_as_it_is(form: str) -> None:
    text = "合計 1,080円 naïve \N{WOMAN}\N{WOMAN} שלום C:\\temp"
    line = logged(FORMATTERS[form](), text)
    assert (json.loads(line)["message"] if form.endswith("json") else line).endswith(text)


def fail() -> None:
    raise ValueError(f"x\n{FORGED}\r{FORGED}\x1b[2J")


@pytest.mark.parametrize("form", FORMATTERS)
def test_what_an_exception_says_cannot_look_like_a_line(form: str) -> None:
    try:
        fail()
    except ValueError:
        text = logged(FORMATTERS[form](), "failed", exc_info=sys.exc_info())
    first, *rest = text.split("\n")
    assert all(is_harmless(line) for line in (first, *rest))
    assert all(line.startswith("    ") for line in rest)
    assert "FORGED" in text


PRINTERS: dict[str, Callable[[Any], None]] = {
    "--json": common.output.print_json,
    "a line each": common.output.print_json_line,
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("printer", PRINTERS)
def test_json_on_a_terminal_cannot_steer_it(printer: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    PRINTERS[printer]({"detail": TEXTS[text], "more": [TEXTS[text]]})
    printed = capsys.readouterr().out
    assert all(is_harmless(line) for line in printed.split("\n")), printed
    assert json.loads(printed) == {"detail": TEXTS[text], "more": [TEXTS[text]]}


@pytest.mark.parametrize("text", TEXTS)
def test_an_error_of_a_command_cannot_either(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = typer.Typer(name="order-x", cls=Program, pretty_exceptions_enable=False)

    @program.command()
    def fail_so() -> None:
        raise CommandError(TEXTS[text], Exit.REFUSED)

    @program.command()
    def other() -> None:
        """A second one makes it a group."""

    with pytest.raises(SystemExit):
        program(["fail-so"])
    assert all(is_harmless(line) for line in capsys.readouterr().err.split("\n"))


@pytest.mark.parametrize("program", ["order-gateway", "order-worker"])
def test_a_warning_of_a_command_cannot_either(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a setting whose name somebody else has chosen."""
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(TEXTS.values()):
        name = f"RAKUTEN_{number}_{text}".encode("utf-8", "replace").decode()
        monkeypatch.setenv(name.replace("\0", "").replace("=", ""), "x")
    with pytest.raises(SystemExit):
        {"order-gateway": gateway.cli.app, "order-worker": worker.cli.app.app}[program](["config"])
    printed = capsys.readouterr().err
    assert printed.count("FORGED") == sum(text.count("FORGED") for text in TEXTS.values())
    for line in printed.removesuffix("\n").split("\n"):
        assert line.startswith(f"{program}: warning: ")
        assert is_harmless(line), line


@pytest.mark.parametrize("text", TEXTS)
def test_a_table_cannot_either(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("task", "detail"), [("po-1", TEXTS[text])], "nothing")
    assert all(is_harmless(line) for line in capsys.readouterr().out.split("\n"))


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("restored")
async def test_a_report_cannot_write_the_gateways_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gateway.logs.set_up_logs("text", "INFO")
    seen = ""
    async with (
        running_gateway(tmp_path, sweep_interval_seconds=0.05) as running,
        rest_client(running.http_port) as client,
    ):
        await submit(client)
        await lease(client)
        told = {"worker_id": "w1", "state": "in_cart", "terminal": True, "detail": f"x\n{FORGED}\x1b[2J"}
        data_of(await post(client, "/api/orders/po-1/report", told))
        async with asyncio.timeout(60):
            while "FORGED" not in seen:
                await asyncio.sleep(0.02)
                seen += capsys.readouterr().err
    for line in (seen + capsys.readouterr().err).removesuffix("\n").split("\n"):
        assert not line.startswith(FORGED)
        assert is_harmless(line), line
