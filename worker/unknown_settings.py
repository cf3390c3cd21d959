"""Settings that nobody reads: a misspelt name would otherwise be ignored without a word."""

import os
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from pydantic_settings import DotEnvSettingsSource

from worker.settings import PREFIX, WorkerSettings

OF_THE_GATEWAY: Final = frozenset(
    {
        "alert_webhook_url",
        "backup_alert_seconds",
        "backup_dir",
        "callback_allowed_hosts",
        "callback_secret",
        "catalog_details_per_round",
        "catalog_interval_seconds",
        "catalog_window_days",
        "gateway_db_path",
        "gateway_grpc_port",
        "gateway_host",
        "gateway_port",
        "gateway_tls_cert",
        "gateway_tls_client_ca",
        "gateway_tls_key",
        "gateway_url",
        "grpc_calls_per_connection",
        "lease_ack_seconds",
        "lease_max_wait_seconds",
        "lease_scope",
        "lease_ttl_seconds",
        "max_body_bytes",
        "max_connections",
        "max_intent_bytes",
        "max_waiters",
        "operator_tls_cert",
        "operator_tls_key",
        "operator_token",
        "permit_settle_seconds",
        "permit_ttl_seconds",
        "query_lease_ttl_seconds",
        "query_max_attempts",
        "query_retention_seconds",
        "query_ttl_seconds",
        "rate_limit_per_second",
        "retention_days",
        "sites",
        "sweep_interval_seconds",
        "task_unclaimed_alert_seconds",
        "upstream_token",
        "worker_offline_alert_seconds",
    }
)
"""Settings of the gateway alone, which may stand in the same `.env`. The worker knows no more of them than the name."""


def unknown_settings() -> Iterator[str]:
    """Yields a sentence for each RAKUTEN_* name, in the environment or in `.env`, that is no setting."""
    known = {f"{PREFIX}{field.upper()}" for field in WorkerSettings.model_fields.keys() | OF_THE_GATEWAY}
    places = {name.upper(): ".env" for name in DotEnvSettingsSource(WorkerSettings).env_vars}
    places |= {name.upper(): "the environment" for name in os.environ}
    for name, place in sorted(places.items()):
        if name.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.75)
            yield f"{name} in {place} is no setting and is ignored" + (f"; is {near[0]} meant?" if near else "")
