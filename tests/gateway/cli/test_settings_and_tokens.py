"""Where a command takes its settings and its token from, and what it says of those that are wrong."""

import json
from pathlib import Path

import pytest

from common.exit_codes import Exit
from tests.gateway.cli.command import WHY, Commands
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.process import gateway_process


async def test_a_token_opens_and_none_or_a_wrong_one_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tokens = {"operator_token": "op-secret", "worker_token": "worker-secret"}
    async with running_gateway(tmp_path, token="op-secret", **tokens) as gateway:
        url = {"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}"}
        without = await Commands(url).run("decisions")
        assert without.code == Exit.DENIED
        assert "set RAKUTEN_OPERATOR_TOKEN" in without.err
        wrong = await Commands(url | {"RAKUTEN_API_TOKEN": "worker-secret"}).run("decisions")
        assert wrong.code == Exit.DENIED
        assert "needs a token of the role operator" in wrong.err
        assert "secret" not in without.err + wrong.err
        right = Commands(url | {"RAKUTEN_API_TOKEN": "x", "RAKUTEN_OPERATOR_TOKEN": "op-secret,next-one"})
        await right.ok("pause", *WHY)
        (event,) = (await right.ok("events", "--kind", "pause", "--json")).json["events"]
        assert event["actor"] == "operator"
        plain = await right.run("decisions", "--gateway", "grpc://gateway.example")
        assert plain.code == Exit.USAGE
        assert "plain text" in plain.err


async def test_the_former_name_of_the_address_still_works_and_warns(
    gateway: RunningGateway, commands: Commands
) -> None:
    former = {"RAKUTEN_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}"}
    ran = await Commands(former).ok("decisions")
    assert "warning: RAKUTEN_GATEWAY_URL is the former name of RAKUTEN_ORDER_GATEWAY_URL: rename it" in ran.err
    both = await Commands(former | commands.environment | {"RAKUTEN_GATEWAY_URL": "grpc://127.0.0.1:1"}).ok("decisions")
    assert both.out == ran.out
    assert not (await commands.ok("decisions")).err


async def test_a_named_token_shows_in_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named = "alice=s3cret-of-16-chars"
    async with running_gateway(tmp_path, operator_token=named) as gateway:
        alice = Commands(
            {"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}", "RAKUTEN_OPERATOR_TOKEN": named}
        )
        await alice.ok("pause", *WHY)
        (event,) = (await alice.ok("events", "--kind", "pause", "--json")).json["events"]
        assert event["actor"] == "alice"


async def test_a_viewer_s_token_opens_what_shows_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with running_gateway(tmp_path, operator_token="op-secret", viewer_token="eve=s3cret-of-16-chars") as gateway:
        url = {"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}"}
        eve = Commands(url | {"RAKUTEN_VIEWER_TOKEN": "eve=s3cret-of-16-chars"})
        for shows in (("decisions",), ("health",), ("alerts",), ("budgets", "list"), ("events",)):
            await eve.ok(*shows)
        refused = await eve.run("pause", *WHY)
        assert refused.code == Exit.DENIED
        assert "PauseDispatch needs a token of the role operator, this is eve" in refused.err
        both = Commands(eve.environment | {"RAKUTEN_OPERATOR_TOKEN": "op-secret"})
        await both.ok("pause", *WHY)


async def test_config_shows_where_each_value_comes_from_and_no_secret(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "shell" / ".env").write_text("RAKUTEN_SITES=rakuten,sandbox\nRAKUTEN_LOG_LEVEL=DEBUG\n")
    here = Commands(
        {
            **commands.environment,
            "RAKUTEN_API_TOKEN": "one-secret,two-secret",
            "RAKUTEN_LOG_LEVEL": "ERROR",
            "RAKUTEN_ALERT_WEBHOOK_URL": "https://hooks.example/secret",
        }
    )
    told = (await here.ok("config", "--json")).json
    assert told["RAKUTEN_SITES"] == {"value": "rakuten,sandbox", "from": ".env"}
    assert told["RAKUTEN_LOG_LEVEL"] == {"value": "ERROR", "from": "environment"}
    assert told["RAKUTEN_LEASE_TTL_SECONDS"] == {"value": "300", "from": "default"}
    assert told["RAKUTEN_API_TOKEN"] == {"value": "(2 set)", "from": "environment"}
    shown = (await here.ok("config")).out
    assert "secret" not in shown + json.dumps(told)
    broken = await Commands({**commands.environment, "RAKUTEN_LEASE_TTL_SECONDS": "soon"}).run("config")
    assert broken.code == Exit.USAGE
    assert "RAKUTEN_LEASE_TTL_SECONDS" in broken.err


async def test_config_takes_an_empty_value_as_none_and_tells_of_misspelt_names(
    commands: Commands, tmp_path: Path
) -> None:
    (tmp_path / "shell" / ".env").write_text("RAKUTEN_SITES=sandbox\nRAKUTEN_LEASE_TTL_SECOND=9\nRAKUTEN_WORKER_ID=w\n")
    here = Commands({**commands.environment, "RAKUTEN_SITES": "", "RAKUTEN_OPERATOR_TOKN": "s", "RAKUTEN_QQQQ": "1"})
    ran = await here.ok("config", "--json")
    assert ran.json["RAKUTEN_SITES"] == {"value": "sandbox", "from": ".env"}
    assert ran.err.count("is no setting") == 3
    assert (
        "RAKUTEN_LEASE_TTL_SECOND in .env is no setting and is ignored; is RAKUTEN_LEASE_TTL_SECONDS meant" in ran.err
    )
    assert "RAKUTEN_OPERATOR_TOKN in the environment" in ran.err
    assert "is RAKUTEN_OPERATOR_TOKEN meant?" in ran.err
    assert "RAKUTEN_QQQQ in the environment is no setting and is ignored\n" in ran.err
    assert "callbacks are not signed" in ran.err


async def test_config_refuses_what_serve_refuses(commands: Commands) -> None:
    tls = {"RAKUTEN_GATEWAY_TLS_CERT": "none.pem", "RAKUTEN_GATEWAY_TLS_KEY": "none.key"}
    ran = await Commands({**commands.environment, **tls}).run("config")
    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert "RAKUTEN_GATEWAY_TLS_CERT" in ran.err


async def test_a_misspelt_setting_is_told_at_start(tmp_path: Path) -> None:
    async with gateway_process(tmp_path, lease_ttl_second="9") as running:
        assert "is RAKUTEN_LEASE_TTL_SECONDS meant?" in running.log
