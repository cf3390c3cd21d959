"""`make demo`: three orders, placed end to end. Exit status 0 only if everything is as it should be."""

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
from rich.text import Text

from common.output import plain, print_line, say, standard_output, width
from common.tables import Cell, print_table
from common.wrapping import wrapped
from demo.checks import EvidenceFile, differences, evidence_files, why_no_screenshot
from demo.orders import DemoOrder, demo_orders
from demo.programs import Program, ProgramError, end_on_signals, entry_point, free_port, serves_grpc, started
from demo.upstream import Upstream, placement_name, state_name, status_name

COLOURS = {"succeeded": "green", "needs_human": "yellow", "failed": "red", "stale": "red"}
LEFT, WHAT, GAP = 10, 16, 2
"""Cells of the two columns before the words, and between columns."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The running parts: where they are and their programs."""

    upstream: Upstream
    shop_url: str
    evidence: Path
    programs: tuple[Program, ...]

    def counters(self) -> dict[str, Any]:
        """What the shop counted."""
        counted: dict[str, Any] = httpx.get(f"{self.shop_url}/_control/counters", trust_env=False).json()
        return counted


@contextmanager
def running_parts(folder: Path) -> Iterator[Parts]:
    """Starts gateway, shop and worker, each as a user would, and stops them at the end."""
    upstream_token, worker_token = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    grpc_port, shop_port = free_port(), free_port()
    target, shop_url = f"127.0.0.1:{grpc_port}", f"http://127.0.0.1:{shop_port}"
    gateway_settings = {
        "RAKUTEN_GATEWAY_PORT": str(free_port()),
        "RAKUTEN_GATEWAY_GRPC_PORT": str(grpc_port),
        "RAKUTEN_SITES": "sandbox",
        "RAKUTEN_UPSTREAM_TOKEN": upstream_token,
        "RAKUTEN_WORKER_TOKEN": worker_token,
    }
    worker_settings = {
        "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://{target}",
        "RAKUTEN_WORKER_TOKEN": worker_token,
        "RAKUTEN_WORKER_ID": "demo-worker",
        "RAKUTEN_SANDBOX_URL": shop_url,
    }
    sandbox = [entry_point("order-worker"), "sandbox", "--port", str(shop_port)]
    with (
        started("gateway", [entry_point("order-gateway"), "serve"], gateway_settings, folder=folder) as gateway,
        started("shop", sandbox, {}, folder=folder) as shop,
    ):
        gateway.wait_until(lambda: serves_grpc(target))
        shop.wait_until(lambda: answers(shop_url))
        # Not closed: it goes with the process. After Ctrl-C in the middle of a call, closing it may wait for ever.
        channel = grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)])
        with started("worker", [entry_point("order-worker"), "run"], worker_settings, folder=folder) as worker:
            line("gateway", f"process {gateway.process.pid}", f"gRPC on {target}")
            line("shop", f"process {shop.process.pid}", shop_url)
            line("worker", f"process {worker.process.pid}", "listens nowhere, calls the gateway")
            yield Parts(
                Upstream(channel, upstream_token),
                shop_url,
                folder / "data" / "evidence",
                (gateway, shop, worker),
            )


def answers(url: str) -> bool:
    """True if something answers HTTP there."""
    try:
        return httpx.get(url, trust_env=False, timeout=1).is_success
    except httpx.TransportError:
        return False


def place(number: int, order: DemoOrder, parts: Parts) -> list[str]:
    """Submits one order, shows its progress and what is left of it; returns what differs from what should be."""
    print_line()
    print_line(Text(f"{number}  {order.title}", "bold"))
    line("intent", "", order.intent_json)
    submitted_at = time.monotonic()
    parts.upstream.submit(order)
    for change in parts.upstream.follow(order.task_id, submitted_at):
        line(f"{change.seconds:6.2f} s", change.what, change.words)
    task = parts.upstream.task(order.task_id)
    counters = parts.counters()
    files = evidence_files(parts.evidence / order.task_id)
    print_line()
    print_evidence(files, parts.evidence)
    for reason in {why_no_screenshot(file.path) for file in files if file.path.suffix == ".html"} - {""}:
        say(f"no screenshots: {reason}")
    print_line()
    line("states", "", " → ".join(state_name(report.state) for report in task.reports))
    line("ended as", status_name(task.status), f"an order on the site is {placement_name(task.placement)}")
    line("shop", "", f"orders counted so far: {counters['orders_placed']}, paid: {counters['payments_made']}")
    wrong = differences(order, task, counters, parts.evidence, screenshots=os.environ.get("CI") == "true")
    return [f"{order.task_id}: {difference}" for difference in wrong]


def line(left: str, what: str, words: str) -> None:
    """One line in three columns, two where `what` is empty; on a terminal the words go on below themselves."""
    head = Text(f"{left:>{LEFT}}" + " " * GAP)
    if what:
        head.append(f"{what:<{WHAT}}", COLOURS.get(what, "cyan")).append(" " * GAP)
    room = width()
    lines = [words] if room is None else wrapped(words, max(room - len(head), 1))
    for number, part in enumerate(lines):
        shown = (head if number == 0 else Text(" " * len(head))) + plain(part)
        shown.rstrip()
        print_line(shown)


def print_evidence(files: list[EvidenceFile], root: Path) -> None:
    """A row for each page that was kept: the bytes of its files, and whether they have the hashes of meta.json."""
    kinds = (".html", ".png", ".meta.json")
    sizes = {file.path: file.size for file in files}

    def row(page: Path) -> tuple[Cell, ...]:
        matches = all(file.matches for file in files if file.path in (page, page.with_suffix(".png")))
        bytes_of = (sizes.get(page.with_suffix(kind)) for kind in kinds)
        return (
            str(page.relative_to(root).with_suffix("")),
            *("none" if size is None else f"{size:,}" for size in bytes_of),
            "as in meta.json" if matches else Text("differs", "red"),
        )

    pages = [file.path for file in files if file.path.suffix == ".html"]
    print_table(("evidence", *kinds, "sha256"), map(row, pages), "no evidence")


def run(folder: Path) -> list[str]:
    """Places the three orders; returns what is not as it should be."""
    wrong = []
    with running_parts(folder) as parts:
        for number, order in enumerate(demo_orders(parts.shop_url), 1):
            try:
                wrong += place(number, order, parts)
            except (grpc.RpcError, httpx.HTTPError) as error:
                for program in parts.programs:
                    program.check()
                words = f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
                wrong.append(f"{order.task_id}: {words}")
                break
    return wrong


def main() -> int:
    """Runs the demo in a folder of its own, which stays so that one can look at it."""
    argparse.ArgumentParser(
        prog="python -m demo", description="Places three orders end to end, with the real parts, and checks each."
    ).parse_args()
    end_on_signals()
    folder = Path(tempfile.mkdtemp(prefix="order-gateway-demo-"))
    begun = time.monotonic()
    print_line(Text("order-gateway: three orders, end to end", "bold"))
    try:
        wrong = run(folder)
    except ProgramError as error:
        wrong = [str(error)]
    except KeyboardInterrupt:
        print_line("\ndemo: interrupted; everything it started was stopped")
        return 130
    print_line()
    print_line(f"evidence, databases and logs stay in {folder}")
    seconds = f"{time.monotonic() - begun:.0f} s"
    if wrong:
        print_line(Text("✗ ", "red").append(f"not as it should be, after {seconds}:", "default"))
        for difference in wrong:
            print_line(f"    {difference}")
        return 1
    say(
        Text(
            f"✓ everything is as it should be, after {seconds}: one order bought, one stopped before the click, one "
            "handed to a person",
            "green",
        )
    )
    return 0


if __name__ == "__main__":
    with standard_output("demo"):
        sys.exit(main())
