"""Requests that two programs could read differently: refused, and the connection with them, so nothing can follow.

Each row is sent with an honest request right behind it on the same connection. To add an attack, add a row.
"""

import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.rest_api import exchange

TOKEN = "an-upstream-token-00000001"
BEARER = f"Authorization: Bearer {TOKEN}"
NEXT = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
SUBMIT = "POST /api/orders"
SUBMIT_RPC = "POST /ordergateway.v1.OrderService/SubmitOrder"
BODY = b'{"task_id": "smuggled", "site": "rakuten", "intent": {}}'
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
LETTER = json.dumps({"task_id": "letter", "site": "rakuten", "intent": {"x": NEXT.decode()}}).encode()
LENGTH = f"Content-Length: {len(BODY)}"
TYPE = "Content-Type: application/json"
CODING = "Transfer-Encoding: chunked"


def request(line: str, *headers: str, body: bytes = b"", version: str = "1.1", end: str = "\r\n") -> bytes:
    return end.join([f"{line} HTTP/{version}", "Host: 127.0.0.1", *headers, "", ""]).encode() + body


def submit(*headers: str, body: bytes = BODY, version: str = "1.1", end: str = "\r\n") -> bytes:
    return request(SUBMIT, BEARER, TYPE, *headers, body=body, version=version, end=end)


REFUSED: dict[str, tuple[bytes, int, str]] = {
    # A length and a transfer encoding: RFC 9112, 6.1.
    "length, then chunked": (submit(LENGTH, CODING), 400, "not both"),
    "chunked, then length": (submit(CODING, LENGTH), 400, "not both"),
    "length, and the body is chunked": (submit(LENGTH, CODING, body=CHUNKED), 400, "not both"),
    "length 0, and the body is chunked": (submit("Content-Length: 0", CODING, body=CHUNKED), 400, "not both"),
    "length of the chunks, and chunked": (submit(f"Content-Length: {len(CHUNKED)}", CODING, body=CHUNKED), 400, "both"),
    "chunked in other letters": (submit(LENGTH, "tRANSFER-eNCODING: ChUnKeD", body=CHUNKED), 400, "not both"),
    "length and chunked over Connect": (request(SUBMIT_RPC, BEARER, TYPE, LENGTH, CODING, body=CHUNKED), 400, "both"),
    "length and chunked of a GET": (request("GET /livez", "Content-Length: 5", CODING, body=b"0\r\n\r\n"), 400, "both"),
    "chunked in HTTP/1.0": (submit(CODING, body=CHUNKED, version="1.0"), 400, "HTTP/1.0 knows no"),
    "chunked, hidden by a tab": (submit(LENGTH, "Transfer-Encoding:\tchunked", body=CHUNKED), 400, "not both"),
    "chunked, hidden by a fold": (submit(LENGTH, "Transfer-Encoding:\r\n chunked", body=CHUNKED), 400, "folded"),
    "chunked, hidden by a bare LF": (submit(LENGTH, "X: a\nTransfer-Encoding: chunked", body=CHUNKED), 400, "CRLF"),
    "chunked, hidden by a bare CR": (submit(LENGTH, "X: a\rTransfer-Encoding: chunked", body=CHUNKED), 400, "CRLF"),
    "chunked, hidden by a space": (submit(LENGTH, "Transfer-Encoding : chunked", body=CHUNKED), 400, "no valid"),
    "chunked, hidden by a vertical tab": (submit(LENGTH, "Transfer-Encoding:\vchunked", body=CHUNKED), 400, "no valid"),
    "chunked twice": (submit(CODING, CODING, body=CHUNKED), 501, "encoding"),
    "chunked of identity": (submit("Transfer-Encoding: identity, chunked", body=CHUNKED), 501, "encoding"),
    "chunked, and something": (submit("Transfer-Encoding: chunked;q=1", body=CHUNKED), 501, "encoding"),
    "identity": (submit("Transfer-Encoding: identity"), 501, "encoding"),
    "xchunked": (submit(LENGTH, "Transfer-Encoding: xchunked", body=CHUNKED), 501, "encoding"),
    # Lengths.
    "two lengths": (submit(LENGTH, "Content-Length: 0"), 400, "send Content-Length once"),
    "two lengths in one": (submit(f"{LENGTH}, 0"), 400, "send Content-Length once"),
    # RFC 9110, 8.6, lets it be read as one, or refused; a proxy may read it otherwise.
    "one length, twice the same": (submit(LENGTH, LENGTH), 400, "send Content-Length once"),
    "length with a sign": (submit(f"Content-Length: +{len(BODY)}"), 400, "no valid"),
    "length below zero": (submit("Content-Length: -1"), 400, "no valid"),
    "length in hexadecimal": (submit("Content-Length: 0x10"), 400, "no valid"),
    "length with an underscore": (submit("Content-Length: 1_0"), 400, "no valid"),
    "length empty": (submit("Content-Length:"), 400, "no valid"),
    "length of 40 digits": (submit("Content-Length: " + "9" * 40), 400, "no valid"),
    # Chunks.
    "chunk of no number": (submit(CODING, body=b"zz\r\n\r\n"), 400, "no valid"),
    "chunk below zero": (submit(CODING, body=b"-1\r\n\r\n"), 400, "no valid"),
    "chunk with 0x": (submit(CODING, body=b"0x10\r\n" + b"a" * 16 + b"\r\n0\r\n\r\n"), 400, "no valid"),
    "chunk longer than said": (submit(CODING, body=b"5\r\n" + BODY + b"\r\n0\r\n\r\n"), 400, "no valid"),
    "chunk with a bare LF": (submit(CODING, body=b"%x\n%s\n0\n\n" % (len(BODY), BODY) + b"\r\n"), 400, "no valid"),
    "chunk extension with a bare LF": (submit(CODING, body=b"5;a\nGET /\r\nabcde\r\n0\r\n\r\n"), 400, "no valid"),
    "chunk of 40 digits": (submit(CODING, body=b"f" * 40 + b"\r\n\r\n"), 400, "no valid"),
    # Lines.
    "all lines end in LF": (submit(LENGTH, end="\n"), 400, "CRLF"),
    "the last line ends in LF": (request("GET /livez").removesuffix(b"\r\n") + b"\n", 400, "CRLF"),
    "all lines end in CR": (submit(LENGTH, end="\r"), 400, "CRLF"),
    "folded header": (submit(LENGTH, "X: a\r\n b"), 400, "folded"),
    "folded request line": (b"GET /livez\r\n HTTP/1.1\r\nHost: x\r\n\r\n", 400, "folded"),
    "space before the colon": (submit(f"Content-Length : {len(BODY)}"), 400, "no valid"),
    "no name": (submit(LENGTH, ": x"), 400, "no valid"),
    "no colon": (submit(LENGTH, "X"), 400, "no valid"),
    "space before the first header": (b"GET /livez HTTP/1.1\r\n X: y\r\nHost: x\r\n\r\n", 400, "folded"),
    "NUL in a header": (submit(LENGTH, "X: a\0b"), 400, "no valid"),
    "an empty line first": (b"\r\n" + request("GET /livez"), 400, "no valid"),
    "two spaces": (request("GET  /livez"), 400, "no valid"),
    "no version": (b"GET /livez\r\nHost: x\r\n\r\n", 400, "no valid"),
    "HTTP/1.2": (request("GET /livez", version="1.2"), 400, "HTTP/1.1 is spoken here"),
    "HTTP/2.0": (request("GET /livez", version="2.0"), 400, "HTTP/1.1 is spoken here"),
    # Who is asked, and for what.
    "two hosts": (request("GET /livez", "Host: other"), 400, "no valid"),
    "two content types": (submit(LENGTH, "Content-Type: text/plain"), 400, "content-type must stand once"),
    "two origins": (submit(LENGTH, "Origin: a", "Origin: b"), 400, "origin must stand once"),
    "two names of the call": (submit(LENGTH, "X-Request-Id: a", "X-Request-Id: b"), 400, "x-request-id must stand"),
}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path_factory.mktemp("gateway"), token=TOKEN, api_token=TOKEN) as gateway:
        yield gateway


def answers_in(data: bytes) -> list[int]:
    """The statuses of the answers in what came over one connection."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


@pytest.mark.parametrize("name", REFUSED)
async def test_what_may_be_two_requests_is_refused_and_nothing_follows(gateway: RunningGateway, name: str) -> None:
    sent, status, words = REFUSED[name]
    before = gateway.dump()
    answer = await exchange(gateway.http_port, sent + NEXT)
    assert answers_in(answer) == [status], answer
    head, _, body = answer.partition(b"\r\n\r\n")
    told = json.loads(body)
    assert (told["success"], told["data"], told["code"]) == (False, None, status)
    assert words in told["msg"]
    assert b"connection: close" in head.lower()
    assert gateway.dump() == before


TAKEN: dict[str, bytes] = {
    "length": submit(LENGTH),
    "chunked": submit(CODING, body=CHUNKED),
    "chunked with an extension": submit(CODING, body=CHUNKED.replace(b"\r\n", b";a=b\r\n", 1)),
    "chunked with a trailer": submit(CODING, body=CHUNKED.removesuffix(b"\r\n") + b"X: y\r\n\r\n"),
    "the same header often, where nobody reads it": submit(LENGTH, "X: a", "X: b"),
    "a tab and spaces around a value": submit(f"Content-Length:\t {len(BODY)} \t"),
    "a body that holds a request": submit(f"Content-Length: {len(LETTER)}", body=LETTER),
}


@pytest.mark.parametrize("name", TAKEN)
async def test_what_is_one_request_is_served_and_the_next_one_too(gateway: RunningGateway, name: str) -> None:
    assert answers_in(await exchange(gateway.http_port, TAKEN[name] + NEXT)) == [200, 200]
