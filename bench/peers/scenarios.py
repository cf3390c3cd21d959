"""The gateway beside each peer, on one PostgreSQL server that flushes every commit, in turn, round by round."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil
from rich.console import Console

from bench import postgres
from bench.installation import Installation, Measured, in_turn
from bench.processes import gateway, measured
from bench.result import Result, Skipped, percentile
from bench.scenarios import Size

OURS: Final = "order-gateway"
PEERS: Final = ("pgqueuer", "procrastinate")
TOLD: Final = None
"""No goal: a peer does other things, so it is told and not judged."""


def peers(size: Size, folder: Path) -> list[Result]:
    """Submissions, wake-ups and serial cycles of each queue.

    Raises Skipped where no PostgreSQL is at hand, or no peer is installed; one that is missing is told and left out.
    """
    versions = installed()
    with installations(folder, [*versions]) as ways:
        # The submissions come last: they leave queues behind.
        wakeups = in_turn(size.rounds, "wakeup", size.leases // 2, ways)
        cycles = in_turn(size.rounds, "cycle", size.seconds, ways)
        submits = in_turn(size.rounds, "submit", size.seconds, ways)
    results = []
    for name, number in versions.items():
        beside = f"(beside {name} {number})"
        results += [
            rate(f"durable submits, 32 callers {beside}", submits[name], submits[OURS]),
            processor_time(
                f"CPU of a submit, client + gateway + database server {beside}", submits[name], submits[OURS]
            ),
            *times(f"submit to order in hand {beside}", wakeups[name], wakeups[OURS]),
            rate(f"serial cycle: submit, take, finish {beside}", cycles[name], cycles[OURS]),
            processor_time(f"CPU of a cycle, client + gateway + database server {beside}", cycles[name], cycles[OURS]),
        ]
    return results


def installed() -> dict[str, str]:
    """The peers that are there, each with its version; says which are not. Raises Skipped where none is."""
    found = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            line = f"bench: {name} is left out: it is not installed (requirements/peers.txt)"
            Console(stderr=True).print(line, soft_wrap=True)
    if not found:
        raise Skipped("no peer is installed")
    return found


@contextmanager
def installations(folder: Path, names: list[str]) -> Iterator[Mapping[str, Installation]]:
    """The gateway and these peers, each in a database of its own."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres.server(folder))
        of_server = psutil.Process(server.program.process.pid)
        target, program = stack.enter_context(
            gateway(folder / "gateway", {"RAKUTEN_GATEWAY_DB_URL": server.new_database("gateway")})
        )

        def load_of(name: str, url: str) -> Callable[[str, float], Any]:
            return lambda kind, amount: measured("peers.load", kind, name, amount, url)

        yield {
            OURS: Installation(load_of(OURS, target), (psutil.Process(program.process.pid),), of_server),
            **{name: Installation(load_of(name, server.new_database(name)), (), of_server) for name in names},
        }


def rate(what: str, peer: Measured, ours: Measured) -> Result:
    """How many a second."""
    before, after = median(peer.per_second), median(ours.per_second)
    return Result(what, f"{before:,.0f}/s", f"{after:,.0f}/s", after / before, TOLD, at_least=True, unit="x")


def times(what: str, peer: Measured, ours: Measured) -> Iterator[Result]:
    """How long it took."""
    for percent in (50, 99):
        before, after = (percentile(each.milliseconds, percent) for each in (peer, ours))
        yield Result(
            f"{what}, p{percent}", f"{before:.2f} ms", f"{after:.2f} ms", after / before, TOLD, at_least=False, unit="x"
        )


def processor_time(what: str, peer: Measured, ours: Measured) -> Result:
    """Processor time of all who take part; a peer has no gateway."""
    (client, _, server), all_of_ours = (
        [*map(median, (each.client_ms, each.gateways_ms, each.server_ms))] for each in (peer, ours)
    )
    of_ours = " + ".join(f"{value:.2f}" for value in all_of_ours)
    return Result(
        what, f"{client:.2f} + {server:.2f} ms", f"{of_ours} ms", sum(all_of_ours) / (client + server), TOLD,
        at_least=False, unit="x",
    )  # fmt: skip


PEER_SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {"peers": peers}
