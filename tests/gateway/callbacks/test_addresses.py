"""Where callbacks may go: judged on the address before any connection, which is then made to that very address."""

import socket
import ssl
import subprocess
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.addresses import inet_aton
from gateway.domain.callbacks import Delivery, endpoint_of
from gateway.domain.fields import _URL, callback_url
from gateway.domain.refusals import RefusedError
from gateway.sweeps.callback_sender import CallbackSender, SendResult
from gateway.sweeps.resolver import Resolver
from tests.gateway.callbacks.receiver import Receiver, receiving

REFUSED = [
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.1.1:8080/",
    "http://2852039166/",  # 169.254.169.254 as one number
    "http://0xA9FEA9FE/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[::169.254.169.254]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[::ffff:0:169.254.169.254]/",  # RFC 2765
    "http://[64:ff9b:1::169.254.169.254]/",  # RFC 8215, as RFC 6052 carries it: 96, 64, 56 and 48 bits before it
    "http://[64:ff9b:1:0:a9:fea9:fe00:0]/",
    "http://[64:ff9b:1:a9:fe:a9fe::]/",
    "http://[64:ff9b:1:a9fe:a9:fe00::]/",
    "http://[2001:0:a9fe:a9fe::1]/",  # Teredo: its server, and its client with all bits turned over
    "http://[2001:0:1234::5601:5601]/",
    "http://[2001:db8::5efe:169.254.169.254]/",  # ISATAP: private, and unique
    "http://[2001:db8::200:5efe:a9fe:a9fe]/",
    "http://[64:ff9b::100.100.100.200]/",
    "http://169.254.169.254./",
    "http://[fe80::1]/",
    "http://[fe80::1%25lo]/",
    "http://[febf::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fd20:ce::254]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://0.0.0.0/",
    "http://0/",
    "http://[::]/",
    "http://[::ffff:0.0.0.0]/",
    "http://224.0.0.1/",
    "http://[ff02::1]/",
    "http://255.255.255.255/",
]
ALLOWED = {
    "http://127.0.0.1/": "127.0.0.1",
    "http://2130706433/": "127.0.0.1",
    "http://10.1.2.3:8080/x": "10.1.2.3",
    "http://192.168.0.9/": "192.168.0.9",
    "http://172.16.5.4/": "172.16.5.4",
    "http://93.184.215.14/": "93.184.215.14",
    "http://[::1]/": "::1",
    "http://[fd12:3456::1]:99/": "fd12:3456::1",
    "http://[64:ff9b:1::10.0.0.1]/": "64:ff9b:1::a00:1",
    "http://[::ffff:0:10.0.0.1]/": "::ffff:0:a00:1",
    "http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/": "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
}


def delivery(url: str) -> Delivery:
    return Delivery("cb_1", None, url, "", "{}", 0, "2026-11-29T15:58:22.123456Z")


UNUSABLE = [
    "http://[::1]]/",
    "http://[[::1]/",
    "http://[v1.fe]/",
    "http://[::1",
    "http://[127.0.0.1]/",
    "http://[1:2:3:4:5:6:7:8:9]/",
    "http://256.1.1.1/",
    "http://1.2.3.4.5/",
    "http://upstream.0x7f/",
    "http://:80/",
    "http:///x",
    "http://upstream:0/",
    "http://upstream:65536/",
    "http://upstream:8o/",
    "http://a..b/",
    "http://-a/",
    "http://up stream/",
    "http://%31%36%39.254.169.254/",
    "http://upstream\\@other/",
    "http://up@st@ream/",
    "http://upstream/\n",
    "http:upstream",
    "ftp://upstream/",
    "//upstream/",
    "",
]


class Stub:
    """In place of every connection: nothing is ever sent."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    def open(self) -> httpx.AsyncClient:
        def answer(request: httpx.Request) -> httpx.Response:
            self.requests.append(request)
            return httpx.Response(204)

        return httpx.AsyncClient(transport=httpx.MockTransport(answer), trust_env=False)


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.mark.parametrize("url", REFUSED + UNUSABLE)
def test_what_can_never_be_called_is_refused_where_it_is_named(url: str) -> None:
    with pytest.raises(RefusedError, match="callback_url: "):
        callback_url("callback_url", url)


@pytest.mark.parametrize("url", [*ALLOWED, "http://upstream", "HTTPS://a:b@Up_stream.example.:65535?x=[1]#y"])
def test_what_may_be_called_is_taken(url: str) -> None:
    assert callback_url("callback_url", url) == url


@pytest.mark.parametrize(
    "host",
    ["1.2.3.4", "2852039166", "0xA9FEA9FE", "0x7f.1", "0251.0376.0251.0376", "0012.013.0xe.15", "1.2.772", "00"],
)
def test_a_host_that_is_an_address_is_read_as_the_resolver_reads_it(host: str) -> None:
    assert inet_aton(host) == inet_aton(f"{host}.") == IPv4Address(socket.inet_aton(host))


@pytest.mark.parametrize(
    "host", ["256.1.1.1", "1.2.3.4.5", "1.2.65536", "08.1", "1..2", "4294967296", "x", "", "\u0661"]
)
def test_a_host_that_is_none_is_not(host: str) -> None:
    assert inet_aton(host) is None


@given(st.from_regex(_URL, fullmatch=True))
def test_what_is_taken_is_a_url_to_the_client_that_calls_it(url: str) -> None:
    try:
        taken = callback_url("callback_url", url)
    except RefusedError:
        return
    assert taken == url
    assert httpx.URL(url).raw_host
    assert endpoint_of(url)


@pytest.mark.parametrize("url", REFUSED + UNUSABLE)
async def test_refused_before_anything_is_connected(url: str, stub: Stub) -> None:
    outcome = await CallbackSender(open_client=stub.open).send(delivery(url))
    assert not outcome.taken
    assert outcome.told.startswith("not sent: "), outcome.told
    assert outcome.hopeless, "no further try can help"
    assert stub.requests == []


@pytest.mark.parametrize(("url", "address"), ALLOWED.items())
async def test_allowed_and_connected_to_that_very_address(url: str, address: str, stub: Stub) -> None:
    assert (await CallbackSender(open_client=stub.open).send(delivery(url))).taken
    (request,) = stub.requests
    assert request.url.host == address
    assert request.headers["host"] == httpx.URL(url).netloc.decode()


def resolving(*addresses: str) -> "object":
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        assert len(asked) == 1, "looked up once, so the answer cannot change between the judgement and the connection"
        return addresses

    return resolve


@pytest.mark.parametrize("addresses", [("169.254.169.254",), ("10.0.0.1", "fe80::1%eth0"), ("fd00:ec2::254%eth0",), ()])
async def test_a_name_is_judged_by_all_of_its_addresses(addresses: tuple[str, ...], stub: Stub) -> None:
    sender = CallbackSender(resolve=resolving(*addresses), open_client=stub.open)  # type: ignore[arg-type]
    outcome = await sender.send(delivery("http://metadata.internal/"))
    assert not outcome.taken
    assert outcome.told.startswith("not sent")
    assert stub.requests == []


async def test_a_name_is_connected_to_by_the_address_that_was_judged(stub: Stub) -> None:
    sender = CallbackSender(resolve=resolving("10.0.0.1", "10.0.0.2"), open_client=stub.open)  # type: ignore[arg-type]
    assert (await sender.send(delivery("https://user:pass@upstream.internal:8443/x?y=1"))).taken
    (request,) = stub.requests
    assert str(request.url) == "https://user:pass@10.0.0.1:8443/x?y=1"
    assert request.headers["host"] == "upstream.internal:8443"
    assert request.extensions["sni_hostname"] == "upstream.internal"


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("http://127.0.0.1/", True),
        ("http://UPSTREAM.internal./", True),
        ("http://upstream.internal.evil.example/", False),
        ("http://10.0.0.1/", False),
    ],
)
async def test_the_list_of_allowed_hosts_narrows(url: str, taken: bool, stub: Stub) -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["10.0.0.7"]

    sender = CallbackSender((), ("127.0.0.1", "upstream.internal"), resolve=resolve, open_client=stub.open)
    outcome = await sender.send(delivery(url))
    assert outcome.taken is taken
    assert taken or outcome == SendResult(
        taken=False, told="not sent: the host is not in RAKUTEN_CALLBACK_ALLOWED_HOSTS"
    )
    assert not outcome.hopeless, "a person may still widen the list"
    assert len(stub.requests) == taken


async def test_the_next_address_is_tried_if_nobody_listens_on_the_first() -> None:
    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async with receiving(Receiver()) as receiver:
        outcome = await CallbackSender(resolve=resolve).send(delivery(f"http://upstream:{receiver.port}/"))
    assert outcome.taken, outcome


async def test_a_name_that_does_not_exist() -> None:
    outcome = await CallbackSender().send(delivery("http://no-such-host.invalid/"))
    assert outcome.told.startswith("not sent: the host cannot be resolved"), outcome.told
    assert not outcome.hopeless, "a name server may know it tomorrow"


async def test_localhost_is_looked_up() -> None:
    assert "127.0.0.1" in await Resolver()("localhost", 80)


@pytest.mark.needs("openssl")
async def test_the_certificate_is_judged_for_the_host_that_the_url_names(tmp_path: Path) -> None:
    server, client = certificates(tmp_path, "upstream.internal")

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    def open_client() -> httpx.AsyncClient:
        return httpx.AsyncClient(verify=client, trust_env=False)

    sender = CallbackSender(resolve=resolve, open_client=open_client)
    async with receiving(Receiver(), tls=server) as receiver:
        good = await sender.send(delivery(f"https://upstream.internal:{receiver.port}/"))
        bad = await sender.send(delivery(f"https://other.internal:{receiver.port}/"))
        unknown = await CallbackSender(resolve=resolve).send(delivery(f"https://upstream.internal:{receiver.port}/"))
    assert good.taken, good
    assert not bad.taken
    assert not unknown.taken, "nobody has signed it"
    assert len(receiver.received) == 1


def certificates(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for `name`, and a client's that trusts it."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
            "-addext", "keyUsage=critical,keyCertSign,digitalSignature",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=str(cert))


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://Upstream.example/x?key=1", "https://upstream.example:443"),
        ("http://user:pass@upstream:8080", "http://upstream:8080"),
        ("http://[::1]/", "http://[::1]:80"),
    ],
)
def test_the_endpoint_of_a_url(url: str, endpoint: str) -> None:
    assert endpoint_of(url) == endpoint
