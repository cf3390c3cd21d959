"""deploy/compose says what the settings, the image and nginx.conf say. Nothing here starts it: that takes an engine."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.unknown_settings import OF_THE_GATEWAY
from gateway.settings import Settings
from tests.gateway.support.nginx import DOCUMENTED

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "compose"
SERVICE = (
    {"build", "cap_drop", "command", "depends_on", "env_file", "environment", "healthcheck", "image", "networks"}
    | {"ports", "read_only", "restart", "secrets", "security_opt", "shm_size", "stop_grace_period", "tmpfs", "ulimits"}
    | {"volumes"}
)
"""Keys of a service in the Compose Specification that are in use here; another one is looked up there first."""


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


def env_file() -> dict[str, str]:
    lines = [line for line in (FOLDER / "gateway.env.example").read_text().splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines if line)


def test_its_keys_are_known_and_what_it_refers_to_is_there(compose: dict[str, Any]) -> None:
    assert set(compose) == {"name", "x-gateway", "services", "secrets", "volumes", "networks"}
    services = compose["services"]
    for name, service in services.items():
        assert set(service) <= SERVICE, name
        assert set(service.get("depends_on", ())) <= set(services)
        assert all("healthcheck" in services[other] for other in service.get("depends_on", ()))
        assert set(service.get("secrets", ())) <= set(compose["secrets"])
        assert set(service["networks"]) <= set(compose["networks"])
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            known = source in compose["volumes"] or source.startswith("./secrets/") or (FOLDER / source).is_file()
            assert known, volume
    header = "".join(line for line in (FOLDER / "compose.yaml").read_text().splitlines() if line.startswith("#"))
    for made in (
        "secrets/database.pgpass",
        "secrets/gateway.env",
        "secrets/tls/fullchain.pem",
        "secrets/tls/privkey.pem",
    ):
        assert made in header


def test_the_image_is_the_documented_one_with_the_driver(services: dict[str, dict[str, Any]]) -> None:
    for name in ("gateway-1", "gateway-2"):
        build = services[name]["build"]
        containerfile = (FOLDER / build["context"] / build["dockerfile"]).resolve()
        assert containerfile == ROOT / "deploy/container/Containerfile"
        text = containerfile.read_text()
        assert {f"ARG {argument}=" in text for argument in build["args"]} == {True}
        assert (ROOT / f"requirements/{build['args']['EXTRA']}.txt").is_file()
        assert "chown 10001 secrets/database.pgpass" in (FOLDER / "compose.yaml").read_text()
        assert "USER 10001:10001" in text
        # What the health check asks is served by the image's own port.
        assert f":{Settings.model_fields['gateway_port'].default}/readyz" in services[name]["healthcheck"]["test"][-1]


def test_its_settings_exist_and_make_sense(
    services: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = env_file() | services["gateway-1"]["environment"]
    names = {name.removeprefix("RAKUTEN_").lower() for name in told}
    assert names <= OF_THE_GATEWAY
    tokens = {name: f"a-token-of-the-{name[8:].lower()}" for name in told if name.endswith("_TOKEN")}
    assert len(tokens) == 3
    secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    container = {"RAKUTEN_GATEWAY_HOST": "0.0.0.0", "RAKUTEN_CALLBACK_SECRET": secret}  # noqa: S104 - as in the image
    for name, value in (told | tokens | container).items():
        monkeypatch.setenv(name, value)
    settings = Settings(_env_file=None)
    assert settings.name == "gateway-1"
    assert settings.gateway_db_url is not None
    url = settings.gateway_db_url.get_secret_value()
    named = re.fullmatch(r"postgresql://(\w+)@(\w+):(\d+)/(\w+)\?passfile=.*", url)
    assert named is not None
    role, host, port, database = named.groups()
    assert host in services
    assert f"'{host}:{port}:{database}:{role}:%s" in (FOLDER / "compose.yaml").read_text()
    sql = (FOLDER / "database.sql").read_text()
    assert f"CREATE ROLE {role} LOGIN" in sql
    assert f"CREATE DATABASE {database} OWNER {role} ENCODING 'UTF8' TEMPLATE template0;" in sql
    mounted = services["gateway-1"]["volumes"][0].split(":")[1]
    assert url.endswith(f"passfile={mounted}")


def test_nginx_gets_the_documented_file_with_the_gateways_addresses(services: dict[str, dict[str, Any]]) -> None:
    script = services["proxy"]["command"][-1]
    text = DOCUMENTED.read_text()
    for expression in re.findall(r"-e '(s[^']+)'", script.partition("> ")[0]):
        _, old, new, _ = expression.split(expression[1])
        assert old in text, expression
        text = text.replace(old, new)
    servers = set(re.findall(r"^ *server (\S+) max_fails", text, re.MULTILINE))
    addresses = [services[f"gateway-{number}"]["networks"]["inside"]["ipv4_address"] for number in (1, 2)]
    ports = [Settings.model_fields[name].default for name in ("gateway_port", "gateway_grpc_port")]
    assert servers == {f"{address}:{port}" for address in addresses for port in ports}
    assert "127.0.0.1" not in "".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    certificates = set(re.findall(r"ssl_certificate(?:_key)? (\S+)/\w+\.pem;", text))
    assert certificates == {volume.split(":")[1] for volume in services["proxy"]["volumes"] if "tls" in volume}
    assert shlex.split(script)[0] == "sed"
