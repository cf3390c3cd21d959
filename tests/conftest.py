"""What every test shares."""

import os
from collections import Counter

import pytest

from tests.simulation.figures import told


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> object:
    """Where CI runs, whatever a test needs is there: a test that skips itself has failed."""
    report: pytest.TestReport = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
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
