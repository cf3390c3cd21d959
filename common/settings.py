"""What every settings class needs: environment and `.env`, prefix RAKUTEN_, read once, nonsense told in one line."""

from ipaddress import ip_address
from typing import Annotated, Final, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings

from common.env_file import fault_of_env_file

PREFIX: Final = "RAKUTEN_"

Port = Annotated[int, Field(ge=0, le=65_535)]

S = TypeVar("S", bound=BaseSettings)


class SettingsError(Exception):
    """A setting makes no sense; the message names it and says what would."""


def load(settings: type[S], **overrides: object) -> S:
    """Read the settings. Raises SettingsError with one line for each setting that makes no sense."""
    if fault := fault_of_env_file():
        raise SettingsError(fault)
    try:
        return settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        raise SettingsError("\n".join(_line_of(problem["loc"], problem["msg"]) for problem in problems)) from None


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine: what goes there does not leave it, and nobody else reaches it."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _line_of(location: tuple[int | str, ...], message: str) -> str:
    text = message.removeprefix("Value error, ")
    return f"{PREFIX}{str(location[0]).upper()}: {text}" if location else text
