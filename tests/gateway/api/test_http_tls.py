"""TLS on both ports: served, refused in plain text, and a renewed certificate taken without a restart."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from gateway.api.tls import Certificates
from tests.gateway.api.test_auth import certificates, health_over_tls, openssl
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.process import gateway_process

__all__ = ["certificates"]

pytestmark = pytest.mark.needs("openssl")


def files_of(folder: Path, **more: Path) -> dict[str, Path]:
    return {"gateway_tls_cert": folder / "server.pem", "gateway_tls_key": folder / "server.key"} | more


@pytest.fixture
async def secured(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningGateway]:
    monkeypatch.setattr(Certificates, "interval", 0.05)
    async with running_gateway(certificates, api_token="api-token-1", **files_of(certificates)) as running:
        yield running


async def served_serial(port: int, *, name: str | None) -> int:
    """The serial number of the certificate that the port shows; `name`: as SNI, or none."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name or "")
    try:
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.close()
        await writer.wait_closed()
    return serial_of(ssl.DER_cert_to_PEM_cert(der))


def serial_of(pem: str) -> int:
    """The serial number in a certificate."""
    der = ssl.PEM_cert_to_DER_cert(pem)
    at = der.index(b"\xa0\x03\x02\x01\x02") + 5
    return int.from_bytes(der[at + 2 : at + 2 + der[at + 1]])


async def new_certificate(folder: Path) -> None:
    """Renew the server's certificate, with a new key, as ACME clients do: one file after the other."""
    ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    await openssl(folder, "req", *ec, "-subj", "/CN=server", "-addext", "subjectAltName=DNS:localhost",
                  "-keyout", "renewed.key", "-out", "renewed.csr")  # fmt: skip
    await openssl(
        folder,
        "x509",
        "-req",
        "-in",
        "renewed.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-days",
        "2",
        "-CAcreateserial",
        "-copy_extensions",
        "copy",
        "-extfile",
        "signed.ext",
        "-out",
        "renewed.pem",
    )


async def test_http_serves_those_who_trust_its_ca_and_nobody_in_plain_text(
    secured: RunningGateway, certificates: Path
) -> None:
    headers = {"Authorization": "Bearer api-token-1"}
    trusting = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    async with httpx.AsyncClient(verify=trusting, headers=headers, timeout=60) as client:
        answer = await client.get(f"https://localhost:{secured.http_port}/health")
        assert answer.json()["data"]["status"] == "ok"
    strangers = ssl.create_default_context(cafile=str(certificates / "other.pem"))
    async with httpx.AsyncClient(verify=strangers, timeout=60) as client:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(f"https://localhost:{secured.http_port}/livez")
    async with httpx.AsyncClient(timeout=60) as client:
        with pytest.raises(httpx.TransportError):
            await client.get(f"http://localhost:{secured.http_port}/livez")


async def test_old_protocols_are_refused(secured: RunningGateway) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await asyncio.open_connection("127.0.0.1", secured.http_port, ssl=context)


async def test_a_renewed_certificate_is_taken_by_both_ports_without_a_restart(
    secured: RunningGateway, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = serial_of((certificates / "server.pem").read_text())
    for port in (secured.port, secured.http_port):
        assert await served_serial(port, name="localhost") == first
        assert await served_serial(port, name=None) == first
    await new_certificate(certificates)
    renewed = serial_of((certificates / "renewed.pem").read_text())
    (certificates / "renewed.key").rename(certificates / "server.key")
    # Half of the renewal is there: the old pair goes on being served.
    async with asyncio.timeout(60):
        while "the certificate in use stays" not in caplog.text:  # noqa: ASYNC110 - the log is the signal
            await asyncio.sleep(0.01)
    assert await served_serial(secured.http_port, name="localhost") == first
    (certificates / "renewed.pem").rename(certificates / "server.pem")
    async with asyncio.timeout(60):
        for port in (secured.port, secured.http_port):
            for name in ("localhost", None):
                while await served_serial(port, name=name) != renewed:  # noqa: ASYNC110 - the handshake is the signal
                    await asyncio.sleep(0.02)
    assert await health_over_tls(secured.port, certificates, "ca") == "OK"


@pytest.mark.extended
async def test_the_program_takes_a_renewed_certificate_too(certificates: Path) -> None:
    """As above on the program's own event loop, at its own pace: within seconds."""
    names = {name: str(path) for name, path in files_of(certificates).items()}
    async with gateway_process(certificates, api_token="api-token-1", **names) as running:
        assert await health_over_tls(running.port, certificates, "ca") == "OK"
        await new_certificate(certificates)
        for name in ("server.key", "server.pem"):
            (certificates / name.replace("server", "renewed")).rename(certificates / name)
        renewed = serial_of((certificates / "server.pem").read_text())
        async with asyncio.timeout(30):
            for port in (running.port, running.http_port):
                while await served_serial(port, name="localhost") != renewed:  # noqa: ASYNC110 - it is the signal
                    await asyncio.sleep(0.1)
        assert await running.terminate() == 0
