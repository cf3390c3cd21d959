"""The shell blocks of the pages, and a machine on which they were followed up to a certain point."""

import re
from pathlib import Path

from tests.deploy.machine import Machine

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, part: str = "") -> list[str]:
    """The shell blocks of a page, or of one part of it, in order; `URL` is where the test has the project from."""
    text = (DOCS / page).read_text()
    if part:
        text = text.partition(f"\n## {part}\n")[2].partition("\n## ")[0]
    found = re.findall(r"```sh\n(.*?) *```", text, re.DOTALL)
    assert found, (page, part)
    unindented = [re.sub(r"^ {3}", "", block, flags=re.MULTILINE) for block in found]
    return [block.replace("git clone URL", "git clone -q file:///source") for block in unindented]


def installed(root: Machine, *more_settings: str) -> str:
    """Follow deployment.md until the gateway runs, these lines at the end of its settings; what was told at last."""
    clone, gateway, _ = blocks("deployment.md", "Install")
    certificate, started, _ = blocks("deployment.md", "The gateway")
    for block in (clone, gateway, certificate):
        root.must(block)
    for line in more_settings:
        root.must(f"echo '{line}' >> /etc/order-gateway/gateway.env")
    return root.must(started)


def with_worker(root: Machine, *more_settings: str) -> str:
    """Follow deployment.md until the worker runs beside the gateway; what was told at last."""
    root.must(blocks("deployment.md", "Install")[2])
    shown, started = blocks("deployment.md", "The worker")
    token = root.must(shown).strip()
    root.must(f"sed -i 's|^RAKUTEN_WORKER_TOKEN=.*|{token}|' /etc/order-gateway/worker.env")
    for line in more_settings:
        root.must(f"echo '{line}' >> /etc/order-gateway/worker.env")
    return root.must(started)
