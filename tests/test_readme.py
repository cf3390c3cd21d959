"""The README shows the example as it is, its links lead somewhere, and its tour can be taken as printed."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from ordergateway.client import AsyncClient

from tests.deploy.machine import machine
from tests.gateway.support.process import gateway_process

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/**/*.md"))


def test_the_example_is_the_file() -> None:
    shown = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown
    assert (ROOT / "examples/submit.py").read_text().endswith(shown[1])


async def test_the_example_runs_as_printed(tmp_path: Path) -> None:
    """But for the port: the documented one may be somebody's."""
    (printed,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    async with gateway_process(tmp_path, api_token="a-token-for-the-tour") as running:
        program = printed.replace("127.0.0.1:31110", f"127.0.0.1:{running.port}")
        assert program != printed
        upstream = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, "tour-1",
            env={"RAKUTEN_API_TOKEN": "a-token-for-the-tour", "PYTHONUNBUFFERED": "1"}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert upstream.stdout is not None
        lines = [await upstream.stdout.readline() for _ in range(2)]
        assert lines == [b"created: True\n", b"TASK_STATUS_QUEUED ORDER_STATE_UNSPECIFIED\n"]
        async with AsyncClient(f"grpc://127.0.0.1:{running.port}", "a-token-for-the-tour") as gateway:
            await gateway.cancel("tour-1", "the end of the test")
        told, _ = await upstream.communicate()
    assert told == b"TASK_STATUS_FAILED ORDER_STATE_UNSPECIFIED\n"
    assert upstream.returncode == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = "".join(
        part for page in PAGES for part in re.findall(r"```sh\n.*?```|`[^`\n]+`", page.read_text(), re.DOTALL)
    )
    named = set(re.findall(r"(?:`|\n)make ([a-z]+)", code))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.extended
@pytest.mark.needs("machine", "git")
@pytest.mark.timeout(300)
def test_the_tour_as_printed(tmp_path: Path) -> None:
    """Block by block, on a machine of its own where the documented ports are free, waiting where the text says so."""
    tour = re.findall(r"```sh\n(.*?)```", README.partition("## Five-minute tour")[2], re.DOTALL)
    settings, parts, submitted, called, curled, looked, restarted, plugged, decided, reclaimed, cleaned = tour
    with machine(tmp_path) as root:
        root.must("git clone -q file:///source /opt/order-gateway")
        root.types("cd /opt/order-gateway; export PYTHONUNBUFFERED=1")  # lines come at once, as on a terminal
        root.must("cp -a /stand-ins/venv .venv; touch .venv/ready")
        root.must(f"ln -s {Path(sys.executable).parent}/buf .venv/bin/buf")
        assert ".venv is ready" in root.must(settings)
        gateway, shop, worker = (root.background(line) for line in parts.splitlines())
        for port in ("31109/readyz", "31120/"):
            root.must(f"curl -sS --retry 60 --retry-connrefused --retry-delay 1 -o /dev/null http://127.0.0.1:{port}")

        assert "TASK_STATUS_SUCCEEDED ORDER_STATE_PAID" in root.types(submitted).out
        assert "created: False" in root.types(submitted).out
        assert root.types(called).out.count("TASK_STATUS_SUCCEEDED") == 2
        assert root.types(curled).out.count("tour-1") >= 2
        assert "03-order-confirm" in root.types(looked).out

        root.must(f"kill -INT {worker}; while kill -0 {worker} 2> /dev/null; do sleep 0.1; done")
        root.types(restarted)
        told = root.types(plugged).out
        assert '"reached":true' in told.replace(" ", "")
        assert "ORDER_STATE_IN_CART" in told + root.until("TASK_STATUS_STALE")
        assert "An order is possible" in root.types(decided).out
        told = root.types(reclaimed).out
        assert "needs_human" in told
        assert '"orders_placed":2' in told.replace(" ", "")
        assert "stop the gateway first" in root.types(cleaned).out
        assert "gateway.db" in root.must("ls data"), "nothing is taken from under a running gateway"
        root.must(f"kill -INT {gateway} {shop}; while kill -0 {gateway} 2> /dev/null; do sleep 0.1; done")
        assert root.types(cleaned).code == 0
        assert root.must("git status --porcelain") == "", "the tour leaves nothing behind"
