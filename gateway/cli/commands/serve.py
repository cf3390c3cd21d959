"""`order-gateway serve`."""

import typer


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(serve)


def serve() -> None:
    """Run the gateway until SIGTERM or Ctrl-C.

    Settings come from the environment and from .env (see .env.example); the ones to begin with are RAKUTEN_SITES,
    RAKUTEN_API_TOKEN and RAKUTEN_GATEWAY_DB_PATH.
    """
    # The servers take as long to load as all else together, and no other command needs them.
    from gateway.cli.process import run_until_signal  # noqa: PLC0415

    run_until_signal()
