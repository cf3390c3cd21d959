"""The forms that the gateway's settings are written in, and what is refused of them.

A message never repeats a value that may be a secret.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import NoDecode

from common.tokens import RESERVED, split_token
from gateway.domain.callbacks import is_signing_secret
from gateway.domain.fields import callback_url, time_zone
from gateway.domain.refusals import RefusedError

_BEFORE_A_URL: Final = re.compile(r"[,\s]+(?=[A-Za-z0-9.+-]+://)")


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _site_names(sites: tuple[str, ...]) -> tuple[str, ...]:
    for site in sites:
        if not site.isascii() or not site.replace("-", "").replace("_", "").isalnum() or site != site.lower():
            raise ValueError(f"site {site!r} must be of a-z 0-9 _ -")
    if len(set(sites)) != len(sites):
        raise ValueError("a site stands twice")
    return sites


def _strong(secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    for secret in secrets:
        text = secret.get_secret_value()
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError("a token must be of printable ASCII characters without spaces")
        name, _ = split_token(text)
        if name in RESERVED:
            raise ValueError(f"the name {name} is the gateway's own; name a token after who uses it")
    return secrets


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_site_names), Field(min_length=1)]
Tokens = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_split), AfterValidator(_strong)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]


def _web_address(url: SecretStr) -> SecretStr:
    try:
        callback_url("", url.get_secret_value())
    except RefusedError:
        raise ValueError("must be an absolute http or https URL in printable ASCII") from None
    return url


def _split_urls(value: object) -> object:
    """Split at what stands before a scheme, since a URL may hold commas."""
    return tuple(part for part in _BEFORE_A_URL.split(value.strip(", \t")) if part) if isinstance(value, str) else value


def _public_url(url: str) -> str:
    try:
        checked = callback_url("", url)
    except RefusedError:
        checked = None
    if checked is None or any(mark in checked for mark in "?#@"):
        raise ValueError("must be an absolute http or https URL without query and user")
    return checked.rstrip("/")


def _database_url(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(("postgresql://", "postgres://")):
        raise ValueError("must begin with postgresql://")
    return url


def _signing_secrets(secrets: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    if not all(is_signing_secret(secret.get_secret_value()) for secret in secrets):
        raise ValueError("a secret must be 24 to 64 bytes in Base64, with or without whsec_ before it")
    return secrets


def _host_names(hosts: tuple[str, ...]) -> tuple[str, ...]:
    for host in hosts:
        if "/" in host or "@" in host or (host.count(":") == 1):
            raise ValueError(f"{host!r} must be a host name or an address alone, without scheme, port and path")
    return tuple(host.strip("[]").rstrip(".").lower() for host in hosts)


def _time_zone(name: str) -> str:
    try:
        return time_zone("", name)
    except RefusedError as refused:
        (violation,) = refused.refusal.violations
        raise ValueError(violation.description) from None


def _approval_sites(told: tuple[str, ...]) -> tuple[str, ...]:
    if len(told) > 1 and {"on", "off"} & set(told):
        raise ValueError("must be off, on, or sites, and nothing beside off and on")
    return told


TimeZone = Annotated[str, AfterValidator(_time_zone)]
ApprovalSites = Annotated[
    tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_approval_sites), Field(min_length=1)
]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
PublicUrl = Annotated[str, AfterValidator(_public_url)]
ChannelUrls = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_split_urls)]
WebhookUrl = Annotated[SecretStr, AfterValidator(_web_address)]
SigningSecrets = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_split), AfterValidator(_signing_secrets)]
HostNames = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(_host_names)]
