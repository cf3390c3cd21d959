"""Arguments and options that several commands share."""

from typing import Annotated, Any, Final

import typer

from gateway.spreadsheets.words import name_of

MAX_YEN: Final = 2**53 - 1
"""The largest amount that the contract takes."""

GatewayOption = Annotated[
    str | None,
    typer.Option(
        "--gateway", metavar="URL", help="grpc://host:port or grpcs://host:port; default RAKUTEN_ORDER_GATEWAY_URL."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many to show at most.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the history with your name.")
]
TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The task's task_id.")]
SiteOption = Annotated[str, typer.Option("--site", help="Only of this site.")]


AccountOption = Annotated[str, typer.Option("--account", help="Only of this account.")]
ReadAccountOption = Annotated[
    str, typer.Option("--account", help="The account on the site; without it the site's only account.")
]


def choice(flag: str, enum: Any, meaning: str) -> Any:
    """Return an option that takes one of an enum's words."""
    words = [name_of(enum, number) for number in enum.values() if number]

    def check(text: str) -> str:
        if text not in words:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(words)}.")
        return text

    return typer.Option(flag, parser=check, metavar=f"[{'|'.join(words)}]", help=meaning)
