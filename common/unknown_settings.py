"""Settings that nobody reads: a misspelt name would otherwise be ignored without a word."""

import os
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from pydantic_settings import BaseSettings, DotEnvSettingsSource

from common.env_file import ENV_FILE
from common.settings import PREFIX

OF_THE_GATEWAY: Final = frozenset(
    {
        "alert_webhook_secret",
        "alert_webhook_url",
        "api_token",
        "approval_always",
        "approval_over_yen",
        "approval_valid_seconds",
        "backup_alert_seconds",
        "backup_dir",
        "budget_alert_percent",
        "budget_timezone",
        "callback_allowed_hosts",
        "callback_secret",
        "catalog_details_per_round",
        "catalog_interval_seconds",
        "catalog_window_days",
        "console_session_seconds",
        "database_standby",
        "gateway_ca",
        "gateway_db_path",
        "gateway_db_url",
        "gateway_grpc_port",
        "gateway_host",
        "gateway_name",
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
        "log_format",
        "log_level",
        "max_body_bytes",
        "max_connections",
        "max_intent_bytes",
        "max_waiters",
        "notify_digest_seconds",
        "notify_escalate_seconds",
        "notify_escalation_urls",
        "notify_urls",
        "operator_tls_cert",
        "operator_tls_key",
        "operator_token",
        "order_gateway_url",
        "permit_max_yen",
        "permit_settle_seconds",
        "permit_ttl_seconds",
        "proposal_valid_seconds",
        "public_url",
        "query_lease_ttl_seconds",
        "query_max_attempts",
        "query_result_max_bytes",
        "query_retention_seconds",
        "query_ttl_seconds",
        "rate_limit_per_second",
        "rest_leases",
        "retention_days",
        "same_intent",
        "same_intent_seconds",
        "second_person",
        "second_person_over_yen",
        "sites",
        "sweep_interval_seconds",
        "task_unclaimed_alert_seconds",
        "upstream_token",
        "viewer_token",
        "worker_offline_alert_seconds",
        "worker_token",
    }
)
"""What the gateway and its commands read."""

OF_THE_WORKER: Final = frozenset(
    {
        "accounts",
        "account_query_concurrency",
        "account_query_default_max_pages",
        "account_query_timeout_seconds",
        "api_token",
        "evidence_dir",
        "gateway_ca",
        "gateway_url",
        "lease_wait_seconds",
        "log_format",
        "log_level",
        "lost_answer_interval_seconds",
        "lost_answer_look_seconds",
        "metrics_textfile",
        "min_free_disk_mib",
        "monitor_days",
        "monitor_interval_seconds",
        "order_gateway_url",
        "order_max_total_yen",
        "payment_alert_seconds",
        "query_result_max_bytes",
        "sandbox_url",
        "scraper_base_url",
        "scraper_token",
        "screenshots",
        "step_timeout_seconds",
        "trading_db_path",
        "verify_max_pages",
        "worker_id",
        "worker_tls_cert",
        "worker_tls_key",
        "worker_token",
    }
)
"""What the worker reads. One `.env` may serve both programs, which know no more of each other than these names."""


def unknown_settings() -> Iterator[str]:
    """Yield a sentence for each RAKUTEN_* name in the environment or in `.env` that is no setting of either program."""
    known = {f"{PREFIX}{field.upper()}" for field in OF_THE_GATEWAY | OF_THE_WORKER}
    places = {name.upper(): ".env" for name in DotEnvSettingsSource(BaseSettings, env_file=ENV_FILE).env_vars}
    places |= {name.upper(): "the environment" for name in os.environ}
    for name, place in sorted(places.items()):
        if name.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.75)
            yield f"{name} in {place} is no setting and is ignored" + (f"; is {near[0]} meant?" if near else "")
