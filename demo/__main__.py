"""`make demo`: three orders, placed end to end. Exit status 0 only if everything is as it should be."""

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
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

from demo.checks import EvidenceFile, differences, evidence_files, why_no_screenshot
from demo.orders import DemoOrder, demo_orders
from demo.programs import Program, ProgramError, end_on_signals, entry_point, free_port, serves_grpc, started
from demo.upstream import Upstream, placement_name, state_name, status_name

COLOURS = {"succeeded": "green", "needs_human": "yellow", "failed": "red", "stale": "red"}
NARROWEST = 110


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
def running_parts(folder: Path, console: Console) -> Iterator[Parts]:
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
            parts = Table.grid(padding=(0, 2))
            parts.add_row("  gateway", f"process {gateway.process.pid}", f"gRPC on {target}")
            parts.add_row("  shop", f"process {shop.process.pid}", shop_url)
            parts.add_row("  worker", f"process {worker.process.pid}", "listens nowhere, calls the gateway")
            console.print(parts)
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


def place(number: int, order: DemoOrder, parts: Parts, console: Console) -> list[str]:
    """Submits one order, shows its progress and what is left of it; returns what differs from what should be."""
    console.print()
    console.print(Rule(f"[bold]{number}  {escape(order.title)}", align="left"))
    line(console, "intent", "", order.intent_json)
    submitted_at = time.monotonic()
    parts.upstream.submit(order)
    for change in parts.upstream.follow(order.task_id, submitted_at):
        line(console, f"{change.seconds:6.2f} s", change.what, change.words)
    task = parts.upstream.task(order.task_id)
    counters = parts.counters()
    files = evidence_files(parts.evidence / order.task_id)
    console.print()
    console.print(evidence_table(files, parts.evidence))
    for reason in {why_no_screenshot(file.path) for file in files if file.path.suffix == ".html"} - {""}:
        console.print(f"no screenshots: {escape(reason)}")
    console.print()
    line(console, "states", "", " → ".join(state_name(report.state) for report in task.reports))
    line(console, "ended as", status_name(task.status), f"an order on the site is {placement_name(task.placement)}")
    line(console, "shop", "", f"orders counted so far: {counters['orders_placed']}, paid: {counters['payments_made']}")
    wrong = differences(order, task, counters, parts.evidence, screenshots=os.environ.get("CI") == "true")
    return [f"{order.task_id}: {difference}" for difference in wrong]


def line(console: Console, left: str, what: str, words: str) -> None:
    """One line in three columns; the words go on below themselves."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=10, justify="right")
    if what:
        grid.add_column(width=16, style=COLOURS.get(what, "cyan"))
    grid.add_column(overflow="fold")
    grid.add_row(*(escape(cell) for cell in (left, what, words) if cell is words or cell))
    console.print(grid)


def evidence_table(files: list[EvidenceFile], root: Path) -> Table:
    """A row for each page that was kept: the bytes of its files, and whether they have the hashes of meta.json."""
    table = Table("evidence", box=None, pad_edge=True, padding=(0, 2, 0, 0))
    kinds = (".html", ".png", ".meta.json")
    for kind in kinds:
        table.add_column(kind, justify="right")
    table.add_column("sha256")
    sizes = {file.path: file.size for file in files}
    for page in (file.path for file in files if file.path.suffix == ".html"):
        matches = all(file.matches for file in files if file.path in (page, page.with_suffix(".png")))
        bytes_of = (sizes.get(page.with_suffix(kind)) for kind in kinds)
        table.add_row(
            str(page.relative_to(root).with_suffix("")),
            *("none" if size is None else f"{size:,}" for size in bytes_of),
            "as in meta.json" if matches else "[red]differs[/]",
        )
    return table


def run(folder: Path, console: Console) -> list[str]:
    """Places the three orders; returns what is not as it should be."""
    wrong = []
    with running_parts(folder, console) as parts:
        for number, order in enumerate(demo_orders(parts.shop_url), 1):
            try:
                wrong += place(number, order, parts, console)
            except (grpc.RpcError, httpx.HTTPError) as error:
                for program in parts.programs:
                    program.check()
                words = f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else str(error)
                wrong.append(f"{order.task_id}: {words}")
                break
    return wrong


def main() -> int:
    """Runs the demo in a folder of its own, which stays so that one can look at it."""
    console = Console()
    if console.width < NARROWEST and not console.is_terminal:
        console = Console(width=NARROWEST)
    end_on_signals()
    folder = Path(tempfile.mkdtemp(prefix="order-gateway-demo-"))
    begun = time.monotonic()
    console.print(Rule("[bold]order-gateway: three orders, end to end", align="left"))
    try:
        wrong = run(folder, console)
    except ProgramError as error:
        wrong = [str(error)]
    except KeyboardInterrupt:
        console.print("\ndemo: interrupted; everything it started was stopped")
        return 130
    console.print()
    console.print(f"  evidence, databases and logs stay in {folder}", highlight=False, soft_wrap=True)
    if wrong:
        console.print(f"[red]✗[/] not as it should be, after {time.monotonic() - begun:.0f} s:")
        for difference in wrong:
            console.print(f"    {difference}", markup=False, highlight=False, soft_wrap=True)
        return 1
    console.print(
        f"[green]✓[/] everything is as it should be, after {time.monotonic() - begun:.0f} s: "
        "one order bought, one stopped before the click, one handed to a person"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
