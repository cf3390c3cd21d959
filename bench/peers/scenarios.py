"""The gateway beside each peer, in turn, round by round, all on one disk: on one PostgreSQL server beside the queues
that use it, and on SQLite beside those that bring a server of their own. Every write is flushed but JetStream's.
"""

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
from bench.peers.servers import SERVERS, served, version_of
from bench.processes import NONE, gateway, measured
from bench.result import Result, Skipped, percentile
from bench.scenarios import Size

OURS: Final = "order-gateway"
ON_POSTGRESQL: Final = ("pgqueuer", "procrastinate")
CLIENTS: Final = {"redis": "redis", "nats": "nats-py"}
"""What has to be installed beside the server, by the name of its distribution."""
TOLD: Final = None
"""No goal: a peer does other things, so it is told and not judged."""


def peers(size: Size, folder: Path) -> list[Result]:
    """Submissions, wake-ups and serial cycles of each queue.

    Raises Skipped where no peer is at hand; one that is missing is told and left out.
    """
    versions = installed()
    results: list[Result] = []
    for way, names in (("PostgreSQL", ON_POSTGRESQL), ("SQLite", tuple(SERVERS))):
        found = {name: versions[name] for name in names if name in versions}
        if not found:
            continue
        try:
            results += beside(found, way, size, folder / way)
        except Skipped as missing:
            Console(stderr=True).print(f"bench: {', '.join(found)} are left out: {missing}", soft_wrap=True)
    return results


def beside(versions: Mapping[str, str], way: str, size: Size, folder: Path) -> Iterator[Result]:
    """The gateway on one engine beside these peers."""
    installations = on_postgresql if way == "PostgreSQL" else on_their_own
    with installations(folder, [*versions]) as ways:
        # The submissions come last: they leave queues behind.
        wakeups = in_turn(size.rounds, "wakeup", size.leases // 2, ways)
        cycles = in_turn(size.rounds, "cycle", size.seconds, ways)
        submits = in_turn(size.rounds, "submit", size.seconds, ways)
    for name, number in versions.items():
        on = f"(on {way}, beside {name} {number})"
        yield rate(f"durable submits, 32 callers {on}", submits[name], submits[OURS])
        yield processor_time(f"CPU of a submit, client + gateway + server {on}", submits[name], submits[OURS])
        yield from times(f"submit to order in hand {on}", wakeups[name], wakeups[OURS])
        yield rate(f"serial cycle: submit, take, finish {on}", cycles[name], cycles[OURS])
        yield processor_time(f"CPU of a cycle, client + gateway + server {on}", cycles[name], cycles[OURS])


def installed() -> dict[str, str]:
    """The peers that are there, each with its version; says which are not. Raises Skipped where none is."""
    found = {}
    for name in (*ON_POSTGRESQL, *SERVERS):
        number, missing = _version_of(name)
        if number is None:
            Console(stderr=True).print(f"bench: {name} is left out: {missing}", soft_wrap=True)
        else:
            found[name] = number
    if not found:
        raise Skipped("no peer is installed")
    return found


def _version_of(name: str) -> tuple[str | None, str]:
    if name in SERVERS and (number := version_of(name)) is None:
        return None, f"there is no {SERVERS[name].program} on this machine"
    distribution = CLIENTS.get(name, name if name not in SERVERS else None)
    try:
        of_client = None if distribution is None else version(distribution)
    except PackageNotFoundError:
        return None, f"{distribution} is not installed (requirements/peers.txt)"
    return (of_client if name not in SERVERS else number), ""


@contextmanager
def on_postgresql(folder: Path, names: list[str]) -> Iterator[Mapping[str, Installation]]:
    """The gateway and these peers, each in a database of its own. Raises Skipped where there is no PostgreSQL."""
    with ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        server = stack.enter_context(postgres.server(folder))
        of_server = psutil.Process(server.program.process.pid)
        ours = _gateway(stack, folder, {"RAKUTEN_GATEWAY_DB_URL": server.new_database("gateway")}, of_server)
        yield {
            OURS: ours,
            **{name: Installation(_load_of(name, server.new_database(name)), (), of_server) for name in names},
        }


@contextmanager
def on_their_own(folder: Path, names: list[str]) -> Iterator[Mapping[str, Installation]]:
    """The gateway on SQLite, and these peers, each with its own server."""
    with ExitStack() as stack:
        ways = {OURS: _gateway(stack, folder, NONE, None)}
        for name in names:
            url, program = stack.enter_context(served(name, folder / name))
            ways[name] = Installation(_load_of(name, url), (), psutil.Process(program.process.pid))
        yield ways


def _gateway(
    stack: ExitStack, folder: Path, settings: Mapping[str, str], server: psutil.Process | None
) -> Installation:
    target, program = stack.enter_context(gateway(folder / "gateway", settings))
    return Installation(_load_of(OURS, target), (psutil.Process(program.process.pid),), server)


def _load_of(name: str, url: str) -> Callable[[str, float], Any]:
    return lambda kind, amount: measured("peers.load", kind, name, amount, url)


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
