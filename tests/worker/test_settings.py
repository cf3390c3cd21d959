"""Settings: names, defaults, tokens, and that nonsense is told by the setting's name."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from common.gateway_target import GatewayTarget
from common.settings import SettingsError
from worker.settings import WorkerSettings, host_as_worker_id, load_settings


@pytest.fixture(autouse=True)
def _empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(monkeypatch: pytest.MonkeyPatch, **variables: str) -> WorkerSettings:
    for name, value in variables.items():
        monkeypatch.setenv(f"RAKUTEN_{name}", value)
    return load_settings()


def test_the_defaults_are_the_documented_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch)
    assert settings.gateway is None
    assert settings.trading_db_path == Path("data/trading.db")
    assert settings.evidence_dir == Path("data/evidence")
    assert settings.step_timeout_seconds == 120
    assert settings.order_max_total_yen is None
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", settings.worker_id)


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in WorkerSettings.model_fields.items() if not field.description] == []


def test_a_host_name_becomes_a_worker_id(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, expected in {"host.local": "host.local", "-ホスト 1": "1", "..": "worker", "a" * 200: "a" * 128}.items():
        monkeypatch.setattr("socket.gethostname", lambda name=name: name)
        assert host_as_worker_id() == expected


def test_env_file_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text(
        "RAKUTEN_WORKER_ID=from-file\nRAKUTEN_ORDER_MAX_TOTAL_YEN=30000\nRAKUTEN_SITES=rakuten\nOTHER=1\n"
    )
    settings = load(monkeypatch, WORKER_ID="from-environment", EVIDENCE_DIR="")
    assert settings.worker_id == "from-environment"
    assert settings.order_max_total_yen == 30000
    assert settings.evidence_dir == Path("data/evidence")


@pytest.mark.parametrize(
    ("url", "address", "tls"),
    [
        ("grpc://gateway.example:1234", "gateway.example:1234", False),
        ("grpcs://gateway.example", "gateway.example:31110", True),
        ("http://gateway.example", "gateway.example:31110", False),
        ("https://gateway.example/", "gateway.example:31110", True),
        ("grpc://[::1]:5", "[::1]:5", False),
    ],
)
def test_gateway_addresses(url: str, address: str, tls: bool) -> None:
    target = GatewayTarget(url)
    assert (target.address, target.tls) == (address, tls)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ORDER_GATEWAY_URL", "gateway:31110"),
        ("ORDER_GATEWAY_URL", "ftp://gateway"),
        ("ORDER_GATEWAY_URL", "grpc://gateway:99999"),
        ("ORDER_GATEWAY_URL", "grpc://gateway/path"),
        ("ORDER_GATEWAY_URL", "grpc://user@gateway"),
        ("WORKER_ID", "a b"),
        ("WORKER_ID", "-a"),
        ("WORKER_ID", "a" * 129),
        ("ORDER_MAX_TOTAL_YEN", "0"),
        ("ORDER_MAX_TOTAL_YEN", "many"),
        ("STEP_TIMEOUT_SECONDS", "0"),
        ("STEP_TIMEOUT_SECONDS", "inf"),
        ("STEP_TIMEOUT_SECONDS", "nan"),
        ("LEASE_WAIT_SECONDS", "61"),
        ("SANDBOX_URL", "127.0.0.1:1"),
        ("SCRAPER_BASE_URL", "grpc://x"),
        ("GATEWAY_CA", "/does/not/exist.pem"),
        ("LOG_FORMAT", "xml"),
        ("WORKER_TOKEN", "a b"),
        ("MIN_FREE_DISK_MIB", "-1"),
    ],
)
def test_nonsense_is_told_in_one_line_that_names_the_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with pytest.raises(SettingsError) as error:
        load(monkeypatch, **{name: value})
    assert f"RAKUTEN_{name}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("url", ["grpc://gateway.example", "http://10.0.0.1:1"])
def test_a_token_is_not_sent_in_plain_text_to_another_host(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    assert load(monkeypatch, ORDER_GATEWAY_URL=url).token is None
    with pytest.raises(SettingsError, match="RAKUTEN_ORDER_GATEWAY_URL would send the token in plain text"):
        load(monkeypatch, ORDER_GATEWAY_URL=url, WORKER_TOKEN="secret")
    for safe in ("grpcs://gateway.example", "grpc://127.0.0.1", "grpc://localhost", "grpc://[::1]"):
        assert load(monkeypatch, ORDER_GATEWAY_URL=safe).token is not None
    with pytest.raises(SettingsError, match="RAKUTEN_SCRAPER_BASE_URL would send the token in plain text"):
        load(monkeypatch, SCRAPER_BASE_URL="http://scraper.example:31107")


def test_the_former_name_of_the_gateway_s_address_still_works_and_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, GATEWAY_URL="grpc://127.0.0.1:1")
    assert settings.gateway is not None
    assert settings.gateway.address == "127.0.0.1:1"
    assert any("RAKUTEN_ORDER_GATEWAY_URL: rename it" in line for line in settings.unusual())
    settings = load(monkeypatch, ORDER_GATEWAY_URL="grpc://127.0.0.1:2")
    assert settings.gateway is not None
    assert settings.gateway.address == "127.0.0.1:2"


def test_the_name_of_a_token_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    token = load(monkeypatch, WORKER_TOKEN="w1=s3cret-of-16-chars==,next").token
    assert token is not None
    assert token.get_secret_value() == "s3cret-of-16-chars=="
    token = load(monkeypatch, WORKER_TOKEN="c2VjcmV0LW9mLWEtdG9rZW4==").token
    assert token is not None
    assert token.get_secret_value() == "c2VjcmV0LW9mLWEtdG9rZW4=="


def test_the_first_token_of_a_list_is_sent_and_none_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, API_TOKEN=" new-secret , old-secret")
    assert settings.token is not None
    assert settings.token.get_secret_value() == "new-secret"
    assert load(monkeypatch, WORKER_TOKEN="mine").token != settings.token
    assert "secret" not in repr(settings) + str(settings)


def test_a_bad_token_is_not_echoed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError) as error:
        load(monkeypatch, WORKER_TOKEN="geheim\x01nis")
    assert "geheim" not in str(error.value)


def test_client_certificate_and_key_go_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cert.pem").write_text("")
    with pytest.raises(SettingsError, match="RAKUTEN_WORKER_TLS_CERT and RAKUTEN_WORKER_TLS_KEY"):
        load(monkeypatch, WORKER_TLS_CERT="cert.pem")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"lease_wait_seconds": 0.9}, "LEASE_WAIT_SECONDS is below 1"),
        ({"step_timeout_seconds": 4.9}, "STEP_TIMEOUT_SECONDS is below 5"),
        ({"lost_answer_look_seconds": 599}, "LOST_ANSWER_LOOK_SECONDS is below 600"),
        ({"lost_answer_look_seconds": 700, "lost_answer_interval_seconds": 701}, "one look only"),
        ({"monitor_interval_seconds": 0.9}, "MONITOR_INTERVAL_SECONDS is below 1"),
        ({"payment_alert_seconds": 299}, "PAYMENT_ALERT_SECONDS is shorter than RAKUTEN_MONITOR_INTERVAL_SECONDS"),
        ({"account_query_timeout_seconds": 4.9}, "ACCOUNT_QUERY_TIMEOUT_SECONDS is below 5"),
    ],
)
def test_a_time_that_is_odd_is_told(settings: dict[str, float], said: str) -> None:
    (line,) = WorkerSettings(_env_file=None, **settings).unusual()
    assert said in line


def test_the_defaults_are_not_odd() -> None:
    assert list(WorkerSettings(_env_file=None).unusual()) == []


@pytest.mark.parametrize("name", ["monitor_interval_seconds", "lost_answer_interval_seconds"])
def test_an_interval_that_leaves_no_rest_is_refused(name: str) -> None:
    WorkerSettings(_env_file=None, **{name: 0.05})
    with pytest.raises(ValidationError, match="greater than or equal to"):
        WorkerSettings(_env_file=None, **{name: 0.049})
