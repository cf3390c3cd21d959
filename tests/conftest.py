"""What every test shares."""

import asyncio
import os
import ssl
from collections import Counter
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.gateway.support import databases
from tests.optional_parts import are_hidden, hidden, missing_for, missing_part
from tests.simulation.figures import reached, told

MISSING = pytest.StashKey[bool]()
"""Set on a test that an optional part is missing for."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests of the gateway run on another engine."""
    parser.addoption("--engine", choices=("sqlite", "postgres"), default=None, help="the gateway's database in tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about SQLite itself where another engine was asked for."""
    if databases.is_postgres():
        about_sqlite = [item for item in items if "sqlite" in item.path.parts or item.get_closest_marker("sqlite")]
        config.hook.pytest_deselected(items=about_sqlite)
        items[:] = [item for item in items if item not in about_sqlite]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: the tests wait for processes and sockets for a third of their time."""
    return min(8, 2 * (os.cpu_count() or 1))


def pytest_configure(config: pytest.Config) -> None:
    """Choose the engine, and hide the optional parts where that is wanted; the processes of xdist inherit it."""
    if config.getoption("--engine"):
        os.environ[databases.VARIABLE] = config.getoption("--engine")
    if databases.is_postgres() and (missing := missing_part("postgresql")):
        raise pytest.UsageError(f"--engine=postgres: {missing}")
    if are_hidden() and not hasattr(config, "workerinput"):
        hiding = hidden()
        hiding.__enter__()
        config.add_cleanup(lambda: hiding.__exit__(None, None, None))


@pytest.fixture(autouse=True)
def _databases_dropped(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drop the databases of a server that the test has made in its folder."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if folder is not None:
        databases.drop_below(folder)


@pytest.fixture(autouse=True, scope="session")
def _quick_stops() -> Iterator[None]:
    """uvicorn looks only every 0.1 s whether it is to stop, and some hundred servers are stopped here."""
    impatient = SimpleNamespace(**{**vars(asyncio), "sleep": lambda seconds: asyncio.sleep(min(seconds, 0.01))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("uvicorn.server.asyncio", impatient)
        yield


@pytest.fixture(autouse=True, scope="session")
def _certificates_read_once() -> Iterator[None]:
    """httpx reads the public certificates anew for each client; here that would be a tenth of all the work."""
    original = httpx.create_ssl_context

    @cache
    def read(trust_env: bool, _file: str | None, _folder: str | None) -> ssl.SSLContext:
        return original(trust_env=trust_env)

    def create(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is not True or cert is not None:
            return original(verify=verify, cert=cert, trust_env=trust_env)
        return read(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx.create_ssl_context", create)
        patch.setattr("httpx._transports.default.create_ssl_context", create)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a part that is missing, before any fixture is made."""
    reason = missing_for(item)
    if reason is not None:
        item.stash[MISSING] = True
        pytest.skip(reason)


# Tests speak with this machine only: what a developer's shell names as a proxy is not on the way, for gRPC neither.
for name in [name for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")]:
    del os.environ[name]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> object:
    """Where CI runs, whatever a test needs is there or is hidden: any other test that is skipped has failed."""
    report: pytest.TestReport = yield
    may_skip = hasattr(report, "wasxfail") or (are_hidden() and item.stash.get(MISSING, False))
    if report.skipped and os.environ.get("CI") == "true" and not may_skip:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where nothing may be: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what was simulated, so that "no violation" can be weighed."""
    runs, seconds, counts = 0, 0.0, Counter[str]()
    for report in terminalreporter.getreports("passed"):
        for name, simulated in report.user_properties:
            if name == "simulated":
                runs, seconds = runs + simulated["runs"], seconds + simulated["seconds"]
                counts.update(simulated["counts"])
    if runs:
        terminalreporter.section("simulated")
        terminalreporter.write_line(told(runs, seconds, counts))
        terminalreporter.write_line(reached(counts))
