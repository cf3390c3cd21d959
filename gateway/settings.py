"""The gateway's settings: environment and `.env`, prefix RAKUTEN_, read once, validated.

The rule: docs/specification.md#settings.

One class, and so longer than other modules: a setting has its default, its limits and its meaning in one place.
"""

import platform
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from common.logs import LogFormat
from common.settings import PREFIX, Port, is_loopback, load
from common.tokens import looks_named, split_token
from common.weak_secrets import ADVICE, is_weak
from gateway.domain.account_queries import QueryPolicy
from gateway.domain.catalog import CatalogPolicy
from gateway.domain.fields import MAX_YEN
from gateway.domain.models import LeaseScope, Policy, RestLeases, SameIntent, Standby
from gateway.domain.times import derived, findings
from gateway.setting_forms import (
    ApprovalSites,
    ChannelUrls,
    DatabaseUrl,
    HostNames,
    Names,
    PublicUrl,
    Seconds,
    SigningSecrets,
    TimeZone,
    Tokens,
    WebhookUrl,
)

_TOKENS = ("api_token", "upstream_token", "worker_token", "operator_token", "viewer_token")

_AGREED = (
    "lease_ttl_seconds",
    "lease_ack_seconds",
    "permit_ttl_seconds",
    "permit_settle_seconds",
    "permit_max_yen",
    "budget_timezone",
    "budget_alert_percent",
    "approval_over_yen",
    "approval_valid_seconds",
    "second_person",
    "second_person_over_yen",
    "proposal_valid_seconds",
    "same_intent_seconds",
    "query_lease_ttl_seconds",
    "query_ttl_seconds",
    "query_max_attempts",
)

MAX_PARAMS_BYTES = 262_144
"""The largest parameters of a query, in bytes (account_queries.proto)."""


_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_MACHINE_NAME = 58
"""How much of a machine's name is kept, so that a port finds room."""


class Settings(BaseSettings):
    """Every setting of the gateway; `.env.example` lists them with their meaning."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", env_ignore_empty=True, extra="ignore", hide_input_in_errors=True
    )

    gateway_host: str = Field("127.0.0.1", description="Address to listen on; another than loopback needs a token.")
    gateway_port: Port = Field(31109, description="Port for HTTP (REST, Connect); 0 takes a free one, told at start.")
    gateway_grpc_port: Port = Field(31110, description="Port for gRPC; 0 takes a free one, told at start.")
    gateway_db_path: Path = Field(Path("data/gateway.db"), description="The database file; one process each.")
    gateway_db_url: DatabaseUrl | None = Field(
        None,
        description="postgresql://USER:PASSWORD@HOST:PORT/DATABASE in place of the file: a database on a server, which "
        "any number of gateways share. Needs the extra `postgres`. It may hold a password, so it is masked.",
    )
    gateway_name: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$")] = Field(
        "",
        description="What this gateway is called among those of its database, in health and metrics: up to 64 of "
        "A-Z a-z 0-9 . _ -. Empty: the machine's name and the gRPC port.",
    )
    database_standby: Standby = Field(
        Standby.NONE,
        description="What a standby of the database's server is good for: none (one that is promoted counts as a "
        "restore), or synchronous (no commit is acknowledged without it, so a promotion loses nothing; while none is "
        "named in synchronous_standby_names, nothing is leased and no permit granted).",
    )
    backup_dir: Path = Field(
        Path("data/backups"), description="Where online backups are put, readable by the owner only."
    )
    retention_days: Annotated[float, Field(ge=0, le=36_500, allow_inf_nan=False)] = Field(
        0,
        description="Days after which the intent of an ended task is dropped; its key and a digest stay for ever, so a "
        "resubmission is still known. 0: never.",
    )
    sites: Names = Field(("rakuten",), description="Sites that tasks may name, comma-separated.")
    lease_scope: LeaseScope = Field(
        LeaseScope.GLOBAL,
        description="One task in execution in all (global), one a site (site), or one an account of a site (account).",
    )
    lease_ttl_seconds: Seconds = Field(300, description="How long a lease lives from its last renewal.")
    lease_ack_seconds: Seconds = Field(30, description="How long a worker may take to acknowledge a lease.")
    lease_max_wait_seconds: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = Field(
        60, description="The longest wait of one lease request; longer ones are clamped."
    )
    sweep_interval_seconds: Seconds = Field(5, description="How often expired leases are looked for.")
    permit_ttl_seconds: Seconds = Field(30, description="How long a submit permit is good for.")
    permit_settle_seconds: Seconds = Field(
        900, description="How long after a permit a second one, or resolving to failed, has to wait."
    )
    max_body_bytes: int = Field(
        4_194_304, ge=65_536, le=67_108_864, description="The largest HTTP request body, in bytes; larger is not read."
    )
    max_waiters: int = Field(
        10_000, ge=1, le=1_000_000, description="How many streams and long polls may be open at once, over all ports."
    )
    max_connections: int = Field(
        10_000,
        ge=10,
        le=1_000_000,
        description="How many connections each port takes at once; further ones are closed.",
    )
    grpc_calls_per_connection: int = Field(
        1_000,
        ge=10,
        le=100_000,
        description="How many calls may be open on one gRPC connection, idle streams included. Clients know of it: a "
        "further call waits there until one has ended, or for a second connection.",
    )
    console_session_seconds: Seconds = Field(
        43_200, description="How long somebody stays signed in to the web console at /console."
    )
    rate_limit_per_second: Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)] = Field(
        0, description="Calls a second that one token may make; 0 means no limit."
    )
    same_intent_seconds: Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)] = Field(
        86_400,
        description="How long a submission is compared with later ones of the same site, account and intent. 0: never.",
    )
    same_intent: SameIntent = Field(
        SameIntent.TELL,
        description="What is done about the same intent again: it is filed, and told (tell), and also held "
        "until it is approved (hold).",
    )
    approval_over_yen: Annotated[int, Field(ge=0, le=MAX_YEN)] | None = Field(
        None,
        description="Orders that may cost more than this, in yen, wait until somebody else than who filed them has "
        "approved them: those with a higher cap, and those without one. Empty: none for that.",
    )
    approval_always: ApprovalSites = Field(
        ("off",),
        description="Whether every order waits for an approval: off, on, or the sites for which it is so, "
        "comma-separated.",
    )
    approval_valid_seconds: Seconds = Field(86_400, description="How long an approval is good that says nothing else.")
    second_person: bool = Field(
        False,
        description="on: a risky decision that one person takes waits until another one confirms it: resolving a task "
        "while an order is possible, an approval of more than RAKUTEN_SECOND_PERSON_OVER_YEN, the first resume after "
        "a restore. Needs named operator tokens of two people.",
    )
    second_person_over_yen: Annotated[int, Field(ge=0, le=MAX_YEN)] = Field(
        100_000, description="The most, in yen, that one person alone may approve; only with RAKUTEN_SECOND_PERSON."
    )
    proposal_valid_seconds: Seconds = Field(
        86_400, description="How long a proposed decision waits to be confirmed before it has expired."
    )
    rest_leases: RestLeases = Field(
        RestLeases.PLAIN,
        description="Which tasks are leased over REST, where no permit is asked for: those without a condition that "
        "the permit judges (plain; with RAKUTEN_PERMIT_MAX_YEN none is), or all, on which none of it is enforced then.",
    )
    permit_max_yen: Annotated[int, Field(ge=1, le=MAX_YEN)] | None = Field(
        None,
        description="The most that any order may cost, in yen: a permit for more is refused, and so is one for a "
        "worker that does not show what it would pay. Empty: no cap but that of the submission.",
    )
    budget_timezone: TimeZone = Field(
        "Asia/Tokyo",
        description="The time zone (IANA name) whose midnight begins the days of a budget that is set from now on; one "
        "that was set before keeps its own.",
    )
    budget_alert_percent: int = Field(
        80, ge=1, le=100, description="How much of a budget may be used before an alert tells of it, in percent."
    )
    max_intent_bytes: int = Field(262_144, ge=1_024, le=2_097_152, description="The largest intent, in bytes.")
    worker_offline_alert_seconds: Seconds = Field(300, description="Silence after which a worker counts as offline.")
    task_unclaimed_alert_seconds: Seconds = Field(600, description="Queue time after which a task counts as waiting.")
    backup_alert_seconds: Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)] = Field(
        129_600,
        description="Age of the newest backup of `order-gateway backup` from which health is degraded. 0: any age, for "
        "whoever backs up by other means.",
    )
    query_lease_ttl_seconds: Seconds = Field(
        180, description="How long a query lease lives; then the query is handed out again."
    )
    query_ttl_seconds: Seconds = Field(900, description="Age from which an unanswered query is expired.")
    query_max_attempts: int = Field(3, ge=1, le=100, description="How often a query is handed out; then it has failed.")
    query_retention_seconds: Seconds = Field(604_800, description="How long an ended query is kept.")
    query_result_max_bytes: int = Field(
        1_048_576, ge=1_024, le=3_145_728, description="The largest result of a query, in bytes of JSON."
    )
    catalog_interval_seconds: Annotated[float, Field(ge=0, le=31_536_000, allow_inf_nan=False)] = Field(
        0, description="How often the order catalogue looks at each site; 0: it is off, and its endpoints say so."
    )
    catalog_window_days: Annotated[float, Field(gt=0, le=3_650, allow_inf_nan=False)] = Field(
        30, description="How far back the catalogue reads the order list of a site."
    )
    catalog_details_per_round: int = Field(
        20, ge=0, le=200, description="Orders, new or not final, whose detail the catalogue reads a round."
    )
    alert_webhook_url: WebhookUrl | None = Field(
        None,
        description="Where every alert raised or cleared is posted as JSON. It may hold a key, so it is masked.",
    )
    alert_webhook_secret: SigningSecrets = Field(
        (),
        description="Secrets that sign what is posted to RAKUTEN_ALERT_WEBHOOK_URL, in the form of "
        "RAKUTEN_CALLBACK_SECRET. Without one it is not signed.",
    )
    notify_urls: ChannelUrls = Field(
        (),
        description="Where people are told of alerts, as apprise writes it (slack://..., mailtos://..., line://...), "
        "separated by spaces or commas. Needs the extra `notify`. They hold keys, so they are masked.",
    )
    notify_escalation_urls: ChannelUrls = Field(
        (),
        description="Who is told, in the same form, if nobody has decided within RAKUTEN_NOTIFY_ESCALATE_SECONDS.",
    )
    notify_escalate_seconds: Seconds = Field(900, description="How long a decision may wait before others are told.")
    notify_digest_seconds: Annotated[float, Field(ge=0, le=604_800, allow_inf_nan=False)] = Field(
        3_600, description="For how long what is not urgent is gathered into one message; 0: each goes by itself."
    )
    public_url: PublicUrl | None = Field(
        None,
        description="Where people's browsers find this gateway (https://gateway.example): messages link to its "
        "console.",
    )
    callback_secret: SigningSecrets = Field(
        (),
        description="Secrets that sign callbacks (Standard Webhooks: whsec_ and 24 to 64 bytes in Base64), "
        "comma-separated for rotation: each adds a signature. Without one callbacks are not signed.",
    )
    callback_allowed_hosts: HostNames = Field(
        (), description="Hosts that callbacks may be sent to, comma-separated. Empty: any but link-local and metadata."
    )
    api_token: Tokens = Field(
        (),
        description="Tokens for every role, comma-separated for rotation. Each is a secret, or name=secret (name: "
        "a-z 0-9 _ -, first a letter, up to 32; secret: 16 characters or more), and the name then says in the "
        "history who it was. The other lists of tokens are written the same way.",
    )
    upstream_token: Tokens = Field((), description="Tokens for upstream services.")
    worker_token: Tokens = Field((), description="Tokens for workers.")
    operator_token: Tokens = Field((), description="Tokens for operators.")
    viewer_token: Tokens = Field((), description="Tokens for those who see what operators see, and change nothing.")
    gateway_tls_cert: Path | None = Field(None, description="Certificate chain (PEM); switches TLS on.")
    gateway_tls_key: Path | None = Field(None, description="Private key of the certificate (PEM).")
    gateway_tls_client_ca: Path | None = Field(
        None, description="CA (PEM) whose certificates gRPC clients must show (mTLS)."
    )
    log_format: LogFormat = Field("text", description="Log lines for people, or JSON.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="The least that is logged.")

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        for wrong in findings(self._times(), refused=True):
            raise ValueError(wrong)
        if unknown := [site for site in self.approval_always if site not in ("off", "on", *self.sites)]:
            raise ValueError(f"{PREFIX}APPROVAL_ALWAYS: {unknown[0]} is none of {PREFIX}SITES, nor off or on")
        if self.second_person and len(self._names_of_operators()) < 2:  # noqa: PLR2004 - one proposes, another confirms
            raise ValueError(
                f"{PREFIX}SECOND_PERSON needs two people who can act: set {PREFIX}OPERATOR_TOKEN to "
                "name=secret,other-name=secret"
            )
        if (self.gateway_tls_cert is None) != (self.gateway_tls_key is None):
            raise ValueError(f"{PREFIX}GATEWAY_TLS_CERT and {PREFIX}GATEWAY_TLS_KEY must be set together")
        if self.gateway_tls_client_ca is not None and self.gateway_tls_cert is None:
            raise ValueError(f"{PREFIX}GATEWAY_TLS_CLIENT_CA needs {PREFIX}GATEWAY_TLS_CERT")
        if self._secrets_of(*_TOKENS[:-1]) & self._secrets_of("viewer_token"):
            raise ValueError(
                f"{PREFIX}VIEWER_TOKEN: a token of it stands in another list too, so it could do more than look"
            )
        if not self.has_token and not is_loopback(self.gateway_host):
            raise ValueError(
                f"{PREFIX}GATEWAY_HOST is {self.gateway_host}: without a token the gateway serves loopback only; "
                f"set {PREFIX}API_TOKEN or the tokens of single roles"
            )
        return self

    def _times(self) -> dict[str, float]:
        """Return every time in seconds, by its setting's name without the unit."""
        seconds = {
            name.removesuffix("_seconds"): getattr(self, name)
            for name in type(self).model_fields
            if name.endswith("_seconds")
        }
        days = {
            name.removesuffix("_days"): getattr(self, name) * 86_400
            for name in type(self).model_fields
            if name.endswith("_days")
        }
        return derived(seconds | days, self.query_max_attempts)

    @property
    def name(self) -> str:
        """What this gateway is called among those of its database."""
        machine = _NO_NAME.sub("-", platform.node()).strip(".-_")[:_MACHINE_NAME] or "gateway"
        return self.gateway_name or f"{machine}-{self.gateway_grpc_port}"

    @property
    def has_token(self) -> bool:
        """True if any token is configured."""
        return any(getattr(self, field) for field in _TOKENS)

    def _secrets_of(self, *fields: str) -> set[str]:
        return {split_token(token.get_secret_value())[1] for field in fields for token in getattr(self, field)}

    def policy(self) -> Policy:
        """Return what the rules need of the settings."""
        return Policy(
            sites=self.sites,
            scope=self.lease_scope,
            lease_ttl=timedelta(seconds=self.lease_ttl_seconds),
            acknowledge_within=timedelta(seconds=self.lease_ack_seconds),
            longest_wait=timedelta(seconds=self.lease_max_wait_seconds),
            permit_ttl=timedelta(seconds=self.permit_ttl_seconds),
            permit_settle=timedelta(seconds=self.permit_settle_seconds),
            max_intent_bytes=self.max_intent_bytes,
            worker_offline_after=timedelta(seconds=self.worker_offline_alert_seconds),
            task_unclaimed_after=timedelta(seconds=self.task_unclaimed_alert_seconds),
            permit_max_yen=self.permit_max_yen,
            rest_leases=self.rest_leases,
            same_intent_within=timedelta(seconds=self.same_intent_seconds),
            budget_zone=self.budget_timezone,
            budget_alert_percent=self.budget_alert_percent,
            same_intent=self.same_intent,
            approval_over_yen=self.approval_over_yen,
            approval_always=self._sites_to_approve(),
            approval_valid=timedelta(seconds=self.approval_valid_seconds),
            second_person=self.second_person,
            second_person_over_yen=self.second_person_over_yen,
            proposal_valid=timedelta(seconds=self.proposal_valid_seconds),
        )

    def _sites_to_approve(self) -> frozenset[str]:
        if self.approval_always == ("on",):
            return frozenset(self.sites)
        return frozenset() if self.approval_always == ("off",) else frozenset(self.approval_always)

    def query_policy(self) -> QueryPolicy:
        """Return what the rules of account queries need of the settings."""
        return QueryPolicy(
            sites=self.sites,
            lease_ttl=timedelta(seconds=self.query_lease_ttl_seconds),
            lifetime=timedelta(seconds=self.query_ttl_seconds),
            max_attempts=self.query_max_attempts,
            retention=timedelta(seconds=self.query_retention_seconds),
            longest_wait=timedelta(seconds=self.lease_max_wait_seconds),
            max_params_bytes=MAX_PARAMS_BYTES,
            max_result_bytes=self.query_result_max_bytes,
        )

    def catalog_policy(self) -> CatalogPolicy:
        """Return what the catalogue needs of the settings."""
        seconds = self.catalog_interval_seconds
        return CatalogPolicy(
            sites=self.sites,
            interval=timedelta(seconds=seconds) if seconds else None,
            window=timedelta(days=self.catalog_window_days),
            details_a_round=self.catalog_details_per_round,
            settle=timedelta(seconds=self.permit_settle_seconds),
        )

    def _names_of_operators(self) -> set[str]:
        tokens = (*self.operator_token, *self.api_token)
        return {name for token in tokens if (name := split_token(token.get_secret_value())[0]) is not None}

    def agreed(self) -> dict[str, object]:
        """Return what rules depend on, in which all gateways on one database must agree, by name."""
        return {
            "SITES": ",".join(sorted(self.sites)),
            "LEASE_SCOPE": self.lease_scope.value,
            "DATABASE_STANDBY": self.database_standby.value,
            "REST_LEASES": self.rest_leases.value,
            "SAME_INTENT": self.same_intent.value,
            "APPROVAL_ALWAYS": ",".join(sorted(self._sites_to_approve())),
            **{name.upper(): getattr(self, name) for name in _AGREED},
        }

    def unusual(self) -> list[str]:
        """Return a sentence for each value that works but is probably not meant."""
        told = list(findings(self._times(), refused=False))
        if not self.callback_secret:
            told.append(f"callbacks are not signed: set {PREFIX}CALLBACK_SECRET so that receivers can tell who calls")
        if self.alert_webhook_url is not None and not self.alert_webhook_secret:
            told.append(
                f"alerts are not signed: set {PREFIX}ALERT_WEBHOOK_SECRET so that the webhook can tell who calls"
            )
        if (self.notify_urls or self.notify_escalation_urls) and self.public_url is None:
            told.append(f"messages about alerts link nowhere: set {PREFIX}PUBLIC_URL")
        if self.rest_leases is RestLeases.ALL:
            told.append(
                f"{PREFIX}REST_LEASES is all: for orders leased over REST no cap, not_after, dry run or approval "
                "is enforced"
            )
        elif self.permit_max_yen is not None:
            told.append(f"{PREFIX}PERMIT_MAX_YEN caps every order, so none is leased over REST")
        told += [
            f"{PREFIX}{field.upper()}: a token that looks like name=secret is taken whole, as its secret has fewer "
            "than 16 characters or its name more than 32"
            for field in _TOKENS
            if any(looks_named(secret.get_secret_value()) for secret in getattr(self, field))
        ]
        told += [
            f"{PREFIX}{field.upper()}: {ADVICE}"
            for field in _TOKENS
            if any(is_weak(split_token(secret.get_secret_value())[1]) for secret in getattr(self, field))
        ]
        if (self.approval_over_yen is not None or self._sites_to_approve()) and not self._names_of_operators():
            told.append(
                f"orders wait for an approval, which needs a named token: set {PREFIX}OPERATOR_TOKEN to name=secret"
            )
        if not self.has_token:
            told.append("no token is set: everybody on this machine may do everything; set RAKUTEN_API_TOKEN")
        elif self.gateway_tls_cert is None and not is_loopback(self.gateway_host):
            told.append(f"tokens travel in plain text: set {PREFIX}GATEWAY_TLS_CERT, or serve loopback behind a proxy")
        return told


def load_settings() -> Settings:
    """Read the settings. Raises SettingsError with one line for each setting that makes no sense."""
    return load(Settings)
