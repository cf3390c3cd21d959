"""`order-worker sandbox`: a shop to try the worker on."""

import asyncio
from typing import Annotated

import typer

from common.exit_codes import CommandError, Exit
from common.output import print_line
from sandbox_shop.server import run_sandbox_shop
from worker.cli.signals import stop_on_signals


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sandbox)


def sandbox(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 31120,
    reflection_delay: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds until a new order shows in the order list. The real site: about 600."),
    ] = None,
) -> None:
    """Run the sandbox shop, a small web shop to try the worker on. Its orders are gone when it ends.

    Let the worker buy there with RAKUTEN_SANDBOX_URL set to the address that is printed.
    """
    try:
        asyncio.run(_serve(host, port, reflection_delay))
    except OSError as error:
        raise CommandError(f"the shop cannot listen on {host}:{port}: {error.strerror or error}", Exit.USAGE) from error


async def _serve(host: str, port: int, reflection_delay: float | None) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    serving = asyncio.create_task(
        run_sandbox_shop(
            host,
            port,
            reflection_delay_seconds=reflection_delay,
            on_ready=lambda url: print_line(f"sandbox shop: {url}"),
        )
    )
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if serving.done():
        await serving
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
