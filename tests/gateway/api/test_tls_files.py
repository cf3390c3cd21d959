"""TLS files that cannot be used: refused at the start and at a renewal, with name and reason; the old ones stay."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from common.pem_files import PemFileError
from gateway.api.tls import Certificates
from gateway.api.tls_files import TlsFiles
from tests.gateway.api.test_auth import certificates, openssl
from tests.gateway.support.process import refused_start

__all__ = ["certificates"]


def files_in(folder: Path) -> TlsFiles:
    return TlsFiles(folder / "server.pem", folder / "server.key", folder / "ca.pem")


SIGNING = """
[ca]
default_ca = signing
[signing]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = names
copy_extensions = copy
[names]
commonName = supplied
[authority]
basicConstraints = critical,CA:true
"""


async def dated(folder: Path, name: str, *days: str) -> None:
    """Sign the server's certificate (by the CA), or a CA's (by itself), for other days."""
    (folder / "index.txt").touch()
    (folder / "serial").write_text("1000\n")
    (folder / "signing.cnf").write_text(SIGNING)
    if name == "server":
        signer: tuple[str, ...] = ("-keyfile", "ca.key", "-cert", "ca.pem")
    else:
        signer = ("-keyfile", f"{name}.key", "-selfsign", "-extensions", "authority")
        await openssl(folder, "req", "-new", "-key", f"{name}.key", "-subj", f"/CN={name}", "-out", f"{name}.csr")
    await openssl(
        folder, "ca", "-batch", "-notext", "-config", "signing.cnf", "-in", f"{name}.csr", "-out", f"{name}.pem",
        "-startdate", days[0], "-enddate", days[1], *signer,
    )  # fmt: skip


Breaks = Callable[[Path], object]


def text(name: str, content: str) -> Breaks:
    return lambda folder: (folder / name).write_text(content)


def half(name: str) -> Breaks:
    def cut(folder: Path) -> None:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])

    return cut


def swapped(name: str, other: str) -> Breaks:
    return lambda folder: (folder / name).write_bytes((folder / other).read_bytes())


def half_a_chain(folder: Path) -> None:
    whole = (folder / "server.pem").read_bytes()
    (folder / "server.pem").write_bytes(whole + whole[: len(whole) // 2])


def a_folder(folder: Path) -> None:
    (folder / "ca.pem").unlink()
    (folder / "ca.pem").mkdir()


BROKEN: dict[str, tuple[Breaks, str]] = {
    "an empty certificate": (text("server.pem", ""), r"server\.pem cannot be used: it is empty"),
    "blank lines": (text("server.pem", "\n\n"), r"server\.pem cannot be used: it is empty"),
    "no certificate": (text("server.pem", "no certificate"), r"server\.pem cannot be used: .* no certificate in PEM"),
    "letters beyond ASCII": (
        text("server.pem", "certificat é"),
        r"server\.pem cannot be used: .* no certificate in PEM",
    ),
    "half a certificate": (half("server.pem"), r"server\.pem cannot be used: .* only a part"),
    "half a chain": (half_a_chain, r"server\.pem cannot be used: .* only a part"),
    "a key for a certificate": (swapped("server.pem", "server.key"), r"server\.pem cannot be used"),
    "another's certificate": (swapped("server.pem", "client.pem"), r"server\.key does not fit .*server\.pem"),
    "an empty key": (text("server.key", ""), r"server\.key does not fit .*: no private key in PEM"),
    "half a key": (half("server.key"), r"server\.key does not fit .*: no private key in PEM"),
    "another's key": (swapped("server.key", "client.key"), r"server\.key does not fit .*: it is another's key"),
    "an empty CA": (text("ca.pem", ""), r"ca\.pem cannot be used: it is empty"),
    "a CA of nonsense": (text("ca.pem", "nonsense"), r"ca\.pem cannot be used: .* no certificate in PEM"),
    "half a CA": (half("ca.pem"), r"ca\.pem cannot be used: .* only a part"),
    "no file": (lambda folder: (folder / "ca.pem").unlink(), r"ca\.pem cannot be read \(No such file"),
    "a folder": (a_folder, r"ca\.pem cannot be read"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_file_that_cannot_be_used_stops_the_start_and_leaves_what_is_served(
    certificates: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    breaks, why = BROKEN[name]
    served = Certificates(files_in(certificates))
    kept = {name: (certificates / name).read_bytes() for name in ("server.pem", "server.key", "ca.pem")}
    breaks(certificates)
    with pytest.raises(PemFileError, match=why):
        Certificates(files_in(certificates))
    assert await served.run_once() == {}
    assert caplog.records == [], "it may only be half written yet"
    for _ in range(2):
        assert await served.run_once() == {}
    (told,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert told.startswith("the certificate in use stays: ")
    if (certificates / "ca.pem").is_dir():
        (certificates / "ca.pem").rmdir()
    for file, content in kept.items():
        (certificates / file).write_bytes(content)
    assert await served.run_once() == {}


@pytest.mark.parametrize(
    ("days", "why"),
    [
        (("20200101000000Z", "20210101000000Z"), "certificate has expired"),
        (("20990101000000Z", "20991231000000Z"), "certificate is not yet valid"),
    ],
    ids=["expired", "not yet valid"],
)
async def test_a_certificate_of_other_days_is_refused(certificates: Path, days: tuple[str, str], why: str) -> None:
    await dated(certificates, "server", *days)
    with pytest.raises(PemFileError, match=rf"server\.pem: {why}"):
        Certificates(files_in(certificates))


async def test_a_client_ca_of_the_future_is_refused(certificates: Path) -> None:
    await dated(certificates, "other", "20990101000000Z", "20991231000000Z")
    (certificates / "ca.pem").write_bytes((certificates / "other.pem").read_bytes())
    with pytest.raises(PemFileError, match=r"ca\.pem: the certificate of commonName=other is not valid before Jan  1"):
        Certificates(files_in(certificates))


async def test_a_client_ca_is_refused_once_each_of_its_certificates_is_out_of_date(certificates: Path) -> None:
    good = (certificates / "ca.pem").read_text()
    await dated(certificates, "other", "20200101000000Z", "20210101000000Z")
    old = (certificates / "other.pem").read_text()
    (certificates / "ca.pem").write_text(old)
    with pytest.raises(PemFileError, match=r"ca\.pem: the certificate of commonName=other expired on Jan  1"):
        Certificates(files_in(certificates))
    (certificates / "ca.pem").write_text(old + good)
    Certificates(files_in(certificates))


async def test_the_program_says_which_file_and_why(certificates: Path) -> None:
    (certificates / "ca.pem").write_text("")
    names = {"cert": "server.pem", "key": "server.key", "client_ca": "ca.pem"}
    files = {f"gateway_tls_{name}": str(certificates / file) for name, file in names.items()}
    code, said = await refused_start(certificates, api_token="a-token-of-more-than-16", **files)
    assert code == 2
    assert f"{certificates / 'ca.pem'} cannot be used: it is empty" in said
    assert "in use?" not in said
