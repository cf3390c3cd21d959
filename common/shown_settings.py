"""Settings as they are shown to people: secrets are not, and each says where it comes from."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pydantic import SecretStr
from pydantic_settings import BaseSettings, DotEnvSettingsSource

from common.settings import PREFIX


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting: its name with the prefix, its value as text, and where it is from: environment, .env or default."""

    name: str
    value: str
    source: str


def shown_settings(settings: BaseSettings) -> Iterator[ShownSetting]:
    """Yield each setting in effect."""
    environment = {name.upper() for name, value in os.environ.items() if value}
    in_file = {name.upper() for name in DotEnvSettingsSource(type(settings)).env_vars}
    for field in type(settings).model_fields:
        name = f"{PREFIX}{field.upper()}"
        source = "environment" if name in environment else ".env" if name in in_file else "default"
        yield ShownSetting(name, _text(getattr(settings, field)), source)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        return "(set)"
    if isinstance(value, tuple):
        if value and all(isinstance(part, SecretStr) for part in value):
            return f"({len(value)} set)"
        return ",".join(str(part) for part in value)
    if isinstance(value, Enum):
        return str(value.value)
    return f"{value:g}" if isinstance(value, float) else str(value)
