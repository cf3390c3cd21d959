"""Settings that nobody reads: a misspelt name would otherwise be ignored without a word."""

import os
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from pydantic_settings import DotEnvSettingsSource

from gateway.cli.settings import CommandSettings
from gateway.settings import PREFIX, Settings

OF_THE_WORKER: Final = frozenset(
    {
        "account_query_concurrency",
        "account_query_default_max_pages",
        "account_query_timeout_seconds",
        "evidence_dir",
        "lease_wait_seconds",
        "lost_answer_interval_seconds",
        "lost_answer_look_seconds",
        "metrics_textfile",
        "min_free_disk_mib",
        "monitor_days",
        "monitor_interval_seconds",
        "order_gateway_url",
        "order_max_total_yen",
        "payment_alert_seconds",
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
    }
)
"""Settings of the worker alone, which may stand in the same `.env`. The gateway knows no more of them than the name."""


def unknown_settings() -> Iterator[str]:
    """Yield a sentence for each RAKUTEN_* name, in the environment or in `.env`, that is no setting."""
    fields = Settings.model_fields.keys() | CommandSettings.model_fields.keys() | OF_THE_WORKER
    known = {f"{PREFIX}{field.upper()}" for field in fields}
    places = {name.upper(): ".env" for name in DotEnvSettingsSource(Settings).env_vars}
    places |= {name.upper(): "the environment" for name in os.environ}
    for name, place in sorted(places.items()):
        if name.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.75)
            yield f"{name} in {place} is no setting and is ignored" + (f"; is {near[0]} meant?" if near else "")
