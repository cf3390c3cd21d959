"""What the sandbox's adapter takes from the environment."""

from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings


class SandboxSettings(BaseSettings):
    """A part of the worker's settings."""

    sandbox_url: str = Field(
        "",
        description="Address of the sandbox shop: scheme, host and port. Empty: the site `sandbox` is not served.",
    )

    @field_validator("sandbox_url")
    @classmethod
    def _check_sandbox_url(cls, value: str) -> str:
        return origin_of(value) if value else value


def origin_of(url: str) -> str:
    """Return the origin, such as `http://127.0.0.1:31120`. Raises ValueError where the address is more, or less."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise ValueError("the sandbox shop's address must be scheme, host and port")
    return f"{parts.scheme}://{parts.netloc}"
