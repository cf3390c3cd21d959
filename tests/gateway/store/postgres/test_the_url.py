"""RAKUTEN_GATEWAY_DB_URL: what is said where it cannot be used, and that its password is shown to nobody."""

from pathlib import Path

import pytest

from gateway.domain.refusals import Reason
from gateway.settings import Settings
from tests.gateway.support import postgres
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.process import gateway_process, refused_start

URL = "postgresql://gateway:the-password@127.0.0.1:1/orders"


async def test_without_the_driver_one_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('it is not installed')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code, said = await refused_start(tmp_path, gateway_db_url=URL)
    assert code != 0
    assert said.strip().splitlines()[-1].endswith("needs the extra: pip install 'order-gateway[postgres]'")
    assert "the-password" not in said


async def test_a_server_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    code, said = await refused_start(tmp_path, gateway_db_url=URL)
    assert code != 0
    assert "host=127.0.0.1 port=1 dbname=orders user=gateway" in said
    assert "Traceback" not in said
    assert "the-password" not in said


def test_the_settings_show_no_password() -> None:
    settings = Settings(_env_file=None, gateway_db_url=URL)  # type: ignore[arg-type]
    assert "the-password" not in repr(settings)


def test_another_kind_of_url_is_refused() -> None:
    with pytest.raises(ValueError, match="must begin with postgresql://"):
        Settings(_env_file=None, gateway_db_url="mysql://gateway@127.0.0.1/orders")  # type: ignore[arg-type]


@pytest.mark.needs("postgresql")
async def test_the_program_serves_and_shows_no_password(url: str, tmp_path: Path) -> None:
    async with gateway_process(tmp_path, gateway_db_url=url.replace("gateway@", "gateway:the-password@")) as running:
        assert await running.terminate() == 0
        assert "the-password" not in running.log
    rows = postgres.server().execute("SELECT count(*) FROM gateways", postgres.name_of(url))
    assert rows == [(0,)], "it has left"


@pytest.mark.needs("postgresql")
async def test_a_backup_of_the_file_is_refused(url: str, tmp_path: Path) -> None:
    async with running_gateway(tmp_path, gateway_db_url=url) as gateway:
        with pytest.raises(RefusedCallError) as told:
            await gateway.api.backup()
        assert told.value.reason is Reason.FEATURE_OFF
