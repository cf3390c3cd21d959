"""TLS files of the worker and of the commands: what cannot be used is told by setting and file, before any call."""

from collections.abc import Callable
from pathlib import Path

import pytest

from common.exit_codes import CommandError
from common.settings import SettingsError
from gateway.cli.client import connected
from tests.gateway.api.test_auth import certificates
from tests.gateway.api.test_tls_files import dated, half, swapped, text
from worker.gateway.client import open_channel
from worker.settings import WorkerSettings

__all__ = ["certificates"]

PAST = ("20200101000000Z", "20210101000000Z")


async def an_old_authority(folder: Path) -> None:
    await dated(folder, "other", *PAST)
    swapped("ca.pem", "other.pem")(folder)


async def an_old_certificate(folder: Path) -> None:
    await dated(folder, "server", *PAST)
    for kind in ("pem", "key"):
        swapped(f"client.{kind}", f"server.{kind}")(folder)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "an empty authority": (text("ca.pem", ""), r"GATEWAY_CA: .*ca\.pem cannot be used: it is empty"),
    "an authority of nonsense": (text("ca.pem", "nonsense"), r"GATEWAY_CA: .*ca\.pem cannot be used"),
    "half an authority": (half("ca.pem"), r"GATEWAY_CA: .*ca\.pem cannot be used: .* only a part"),
    "an authority that has expired": (an_old_authority, r"GATEWAY_CA: .*ca\.pem: the certificate of .* expired on"),
    "an empty certificate": (text("client.pem", ""), r"TLS_CERT, _KEY: .*client\.pem cannot be used: it is empty"),
    "half a key": (half("client.key"), r"TLS_CERT, _KEY: .*client\.key does not fit .*: no private key"),
    "another's key": (swapped("client.key", "server.key"), r"TLS_CERT, _KEY: .*client\.key .* it is another's key"),
    "a certificate that has expired": (an_old_certificate, r"TLS_CERT, _KEY: .*client\.pem: certificate has expired"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_file_that_cannot_be_used_is_told_before_anything_is_sent(
    certificates: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = {"GATEWAY_CA": "ca.pem"}
    for role in ("WORKER", "OPERATOR"):
        files |= {f"{role}_TLS_CERT": "client.pem", f"{role}_TLS_KEY": "client.key"}
    for setting, file in files.items():
        monkeypatch.setenv(f"RAKUTEN_{setting}", str(certificates / file))
    monkeypatch.setenv("RAKUTEN_ORDER_GATEWAY_URL", "grpcs://localhost:1")
    monkeypatch.chdir(certificates)
    await open_channel(WorkerSettings()).close()
    with connected("grpcs://localhost:1"):
        pass
    breaks, why = BROKEN[name]
    broken = breaks(certificates)
    if broken is not None and not isinstance(broken, int):
        await broken  # type: ignore[misc]
    with pytest.raises(SettingsError, match=f"RAKUTEN_(WORKER_)?{why}"):
        open_channel(WorkerSettings())
    with pytest.raises(CommandError, match=f"RAKUTEN_(OPERATOR_)?{why}"), connected("grpcs://localhost:1"):
        pass
