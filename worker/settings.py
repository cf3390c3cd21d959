"""The worker's settings: environment and `.env`, prefix RAKUTEN_, read once, validated.

The rule: docs/specification.md#settings.

One class, and so longer than other modules: a setting has its default, its limits and its meaning in one place.
"""

import re
import socket
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from common.gateway_target import DEFAULT_GRPC_PORT, FORMER_NAME, RENAME, GatewayTarget
from common.logs import LogFormat
from common.settings import PREFIX, load
from common.target import ONLY_ACCOUNT
from common.tokens import split_token
from common.weak_secrets import ADVICE, is_weak
from worker.sites.registry import SiteSettings

SITE_LAG = 600
LEAST_INTERVAL = 0.05
"""Seconds between two looks at the site, at the least: the worker would do nothing else."""
MAX_ACCOUNTS = 64
"""Accounts that one worker may serve (LeaseOrdersRequest)."""
ONLY_ACCOUNT_MARK = "-"
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def host_as_worker_id() -> str:
    """Return the host name with everything replaced that a worker_id may not contain; else `worker`."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).lstrip("._-")[:128]
    return name or "worker"


def _first_token(value: object) -> object:
    """A comma-separated list serves rotation at the gateway; the worker sends the first one."""
    if not isinstance(value, str):
        return value
    token = next((part.strip() for part in value.split(",") if part.strip()), None)
    if token is not None and not all("!" <= character <= "~" for character in token):
        raise ValueError("must consist of visible ASCII characters")
    return token


def _secret_of_first_token(value: object) -> object:
    """A gateway's token may be given as `name=secret`; the name is the gateway's affair and is not sent."""
    token = _first_token(value)
    return split_token(token)[1] if isinstance(token, str) else token


def _account_names(value: object) -> object:
    """Read a comma-separated list; `-` is the sites' only account, which has no name."""
    if not isinstance(value, str):
        return value
    names = [part.strip() for part in value.split(",") if part.strip()]
    for name in names:
        if name != ONLY_ACCOUNT_MARK and not _ACCOUNT.fullmatch(name):
            raise ValueError(f"account {name!r} must be 1 to 64 of A-Z a-z 0-9 . _ -, first a letter or digit")
    if len(set(names)) != len(names):
        raise ValueError("an account stands twice")
    return tuple(ONLY_ACCOUNT if name == ONLY_ACCOUNT_MARK else name for name in names)


Accounts = Annotated[
    tuple[str, ...], NoDecode, BeforeValidator(_account_names), Field(min_length=1, max_length=MAX_ACCOUNTS)
]
Token = Annotated[SecretStr | None, BeforeValidator(_first_token)]
GatewayToken = Annotated[SecretStr | None, BeforeValidator(_secret_of_first_token)]


class WorkerSettings(SiteSettings):
    """Every setting of the worker, those of its sites included; the description of each is its documentation."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )

    order_gateway_url: str = Field(
        "",
        description="The gateway's gRPC address, grpc://host:port or grpcs://host:port (TLS); http:// and https:// are "
        f"taken as the same, the default port is {DEFAULT_GRPC_PORT}. Empty: the worker's loops do not start, its "
        "local commands still work, and those of order-gateway look on this machine, at RAKUTEN_GATEWAY_GRPC_PORT.",
    )
    gateway_url: str = Field("", description=FORMER_NAME)
    worker_id: str = Field(
        default_factory=host_as_worker_id,
        description="This worker's name, 1 to 128 of A-Z a-z 0-9 . _ -, first a letter or digit. Default: host name.",
    )
    accounts: Accounts = Field(
        (ONLY_ACCOUNT,),
        description="Accounts that this worker serves on each of its sites, comma-separated, at most 64, each 1 to 64 "
        "of A-Z a-z 0-9 . _ -, first a letter or digit; - stands for the sites' only account, which is the default. "
        "Orders of others are never taken. A worker executes one order at a time: more accounts want more workers.",
    )
    trading_db_path: Path = Field(
        Path("data/trading.db"),
        description="The journal: the authority on what was done, on a local disk. One worker process a file, held by "
        "locks on it and beside it.",
    )
    evidence_dir: Path = Field(Path("data/evidence"), description="Where pages and screenshots are kept.")
    worker_token: GatewayToken = Field(None, description="Bearer token for the gateway, worker role.")
    api_token: GatewayToken = Field(
        None,
        description="Bearer token for the gateway where RAKUTEN_WORKER_TOKEN is not set; of a comma-separated list "
        "the first one is sent.",
    )
    gateway_ca: Path | None = Field(
        None, description="PEM file of the authority that signed the gateway's certificate. Default: the system's own."
    )
    worker_tls_cert: Path | None = Field(None, description="PEM client certificate, where the gateway asks for one.")
    worker_tls_key: Path | None = Field(None, description="PEM key of the client certificate.")
    scraper_base_url: str = Field(
        "",
        description="The scraper that tells an item's variants (POST …/api/item_detail). Empty: an item without a "
        "variant_id in the intent is taken as having no variants.",
    )
    scraper_token: Token = Field(
        None,
        description="Bearer token for the scraper. Unset, the scraper is sent the worker's token for the gateway, so "
        "set one where it is another's. Over plain http a token is sent to this machine only.",
    )
    order_max_total_yen: int | None = Field(
        None, ge=1, description="Most that an order may cost, yen, where the intent sets no limit. Neither: no order."
    )
    step_timeout_seconds: float = Field(120, gt=0, le=3600, description="Most that one step on the site may take.")
    lease_wait_seconds: float = Field(30, ge=0, le=60, description="How long one lease stream waits for an order.")
    verify_max_pages: int = Field(20, ge=1, le=200, description="Pages of the order list that a verification reads.")
    lost_answer_look_seconds: float = Field(
        900,
        ge=0,
        le=86400,
        description="How long the worker looks for an order whose submit answer was lost; a site shows a new order "
        "only after about ten minutes.",
    )
    lost_answer_interval_seconds: float = Field(
        30, ge=LEAST_INTERVAL, le=3600, description="Time between two of these looks."
    )
    monitor_interval_seconds: float = Field(
        300, ge=LEAST_INTERVAL, le=86400, description="How often placed orders are looked at on the site."
    )
    monitor_days: int = Field(90, ge=1, le=3650, description="For how long after its end an order is looked at.")
    payment_alert_seconds: float = Field(
        86400, ge=0, description="How long before a payment deadline the log warns of it."
    )
    account_query_timeout_seconds: float = Field(
        120, gt=0, le=3600, description="Most that one account query may take, waiting for the account included."
    )
    account_query_default_max_pages: int = Field(
        3, ge=1, le=20, description="Pages of the order list that a query reads unless it says how many."
    )
    account_query_concurrency: int = Field(4, ge=1, le=64, description="Most account queries in hand at once.")
    query_result_max_bytes: int = Field(
        1_048_576, ge=1_024, le=3_145_728, description="The largest result of a query, in bytes of JSON."
    )
    screenshots: bool = Field(
        True,
        description="Keep a picture beside each evidence page, drawn by the system's Chromium (extra `browser`). Where "
        "there is none, orders proceed without and meta.json says why.",
    )
    min_free_disk_mib: int = Field(
        200, ge=0, description="With less free disk (MiB) no new order is taken, and no click is made."
    )
    metrics_textfile: Path | None = Field(
        None,
        description="File that the worker's metrics are written to every 15 s, in Prometheus' text form; its name "
        "should end in .prom, in the folder that node_exporter reads. Default: none is written.",
    )
    log_format: LogFormat = Field("text", description="text: key=value lines for people; json: one object a line.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Lowest level that is logged.")

    @field_validator("worker_id")
    @classmethod
    def _check_worker_id(cls, value: str) -> str:
        if not _WORKER_ID.fullmatch(value):
            raise ValueError("must be 1 to 128 of A-Z a-z 0-9 . _ -, first a letter or digit")
        return value

    @field_validator("order_gateway_url", "gateway_url")
    @classmethod
    def _check_gateway_url(cls, value: str) -> str:
        if value:
            GatewayTarget(value)
        return value

    @field_validator("scraper_base_url")
    @classmethod
    def _check_http_url(cls, value: str) -> str:
        if value and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).hostname):
            raise ValueError("must be an absolute http or https URL")
        return value.rstrip("/")

    @field_validator("gateway_ca", "worker_tls_cert", "worker_tls_key")
    @classmethod
    def _check_readable(cls, value: Path | None) -> Path | None:
        try:
            there = value is None or value.is_file()
        except OSError as error:
            raise ValueError(f"{value} cannot be read ({error.strerror})") from error
        if not there:
            raise ValueError(f"there is no file {value}; put its path right, or the file there")
        return value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if (self.worker_tls_cert is None) != (self.worker_tls_key is None):
            raise ValueError(f"{PREFIX}WORKER_TLS_CERT and {PREFIX}WORKER_TLS_KEY go together")
        target = self.gateway
        if target is not None and self.token is not None and not target.tls and not target.is_loopback:
            raise ValueError(
                f"{PREFIX}ORDER_GATEWAY_URL would send the token in plain text to {target.host}; use grpcs://"
            )
        scraper = urlsplit(self.scraper_base_url)
        if scraper.scheme == "http" and self.scraper_bearer is not None:
            host = GatewayTarget(f"http://{scraper.netloc.rpartition('@')[2]}")
            if not host.is_loopback:
                raise ValueError(
                    f"{PREFIX}SCRAPER_BASE_URL would send the token in plain text to {host.host}; use https://"
                )
        return self

    def _odd_times(self) -> Iterator[str]:
        if self.lease_wait_seconds < 1:
            yield f"{PREFIX}LEASE_WAIT_SECONDS is below 1: the gateway is asked once a second all the same"
        if self.step_timeout_seconds < 5:  # noqa: PLR2004 -- about what a slow shop takes for a page
            yield f"{PREFIX}STEP_TIMEOUT_SECONDS is below 5: a slow page of the site ends the order"
        if self.lost_answer_look_seconds < SITE_LAG:
            yield (
                f"{PREFIX}LOST_ANSWER_LOOK_SECONDS is below {SITE_LAG}: a site shows a new order only after about ten "
                "minutes, so one whose answer was lost may not be found"
            )
        if 0 < self.lost_answer_look_seconds < self.lost_answer_interval_seconds:
            yield f"{PREFIX}LOST_ANSWER_INTERVAL_SECONDS is longer than {PREFIX}LOST_ANSWER_LOOK_SECONDS: one look only"
        if self.monitor_interval_seconds < 1:
            yield f"{PREFIX}MONITOR_INTERVAL_SECONDS is below 1: the site is asked all the time"
        if self.payment_alert_seconds < self.monitor_interval_seconds:
            yield (
                f"{PREFIX}PAYMENT_ALERT_SECONDS is shorter than {PREFIX}MONITOR_INTERVAL_SECONDS: a payment deadline "
                "may pass between two looks"
            )
        if self.account_query_timeout_seconds < 5:  # noqa: PLR2004 -- as above
            yield f"{PREFIX}ACCOUNT_QUERY_TIMEOUT_SECONDS is below 5: a slow page of the site fails the query"

    @cached_property
    def gateway(self) -> GatewayTarget | None:
        """Where the gateway is; None where none is set."""
        url = self.order_gateway_url or self.gateway_url
        return GatewayTarget(url) if url else None

    @property
    def token(self) -> SecretStr | None:
        """The bearer token for the gateway."""
        return self.worker_token or self.api_token

    @property
    def scraper_bearer(self) -> SecretStr | None:
        """The bearer token for the scraper."""
        return self.scraper_token or self.token

    def unusual(self) -> list[str]:
        """Return a sentence for each value that works but is probably not meant, alone or beside another."""
        weak = [
            f"{PREFIX}{field.upper()}: {ADVICE}"
            for field in ("worker_token", "api_token", "scraper_token")
            if (token := getattr(self, field)) is not None and is_weak(token.get_secret_value())
        ]
        return [*([RENAME] if self.gateway_url else []), *weak, *self._odd_times()]


def load_settings(**overrides: object) -> WorkerSettings:
    """Read the settings. Raises SettingsError with one line for each setting that makes no sense."""
    return load(WorkerSettings, **overrides)
