"""Bad input over HTTP: each gets its documented answer (docs/rest.md), nothing is stored, memory stays flat."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import httpx
import psutil
import pytest

from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.process import GatewayProcess
from tests.gateway.support.rest_api import body_of, data_of, envelope_of, exchange, post, rest_client, submit

MIB = 2**20
SUBMIT_RPC = "/ordergateway.v1.OrderService/SubmitOrder"


@pytest.fixture
async def rest(gateway: RunningGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with rest_client(gateway.http_port) as client:
        yield client


def intent(text: str) -> bytes:
    return f'{{"task_id": "po-1", "site": "rakuten", "intent": {{"x": {text}}}}}'.encode()


def order(task_id: str, more: str = "") -> bytes:
    return f'{{"task_id": "{task_id}", "site": "rakuten", "intent": {{}}{more}}}'.encode()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("Content-Encoding", "gzip", "without Content-Encoding"),
        ("Content-Encoding", "identity, gzip", "without Content-Encoding"),
        ("Content-Type", "application/json; charset=utf-16", "must be UTF-8"),
        ("Content-Type", 'application/json;charset="ISO-8859-1"', "must be UTF-8"),
    ],
)
async def test_a_body_said_to_be_written_otherwise_is_refused(
    rest: httpx.AsyncClient, gateway: RunningGateway, name: str, value: str, told: str
) -> None:
    headers = {"Content-Type": "application/json", name: value}
    answer = await rest.post("/api/orders", content=order("po-1"), headers=headers)
    assert answer.status_code == 400
    assert told in answer.json()["msg"]
    assert gateway.rows("SELECT * FROM tasks") == []
    taken = {"Content-Type": "application/json; Charset=UTF-8", "Content-Encoding": "identity"}
    assert (await rest.post("/api/orders", content=order("po-1"), headers=taken)).status_code == 200


BODIES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "the body is empty"),
    "no JSON": (b"{task_id: 1}", 400, "not JSON"),
    "cut off": (b'{"task_id": "po', 400, "not JSON"),
    "invalid UTF-8": (intent('"?"').replace(b"?", b"\xff"), 400, "not UTF-8"),
    "UTF-16": (intent("1").decode().encode("utf-16"), 400, "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf" + intent("1"), 400, "not JSON"),
    "NaN": (intent("NaN"), 400, "NaN"),
    "Infinity": (intent("-Infinity"), 400, "-Infinity"),
    "raw NUL": (intent('"\0"'), 400, "not JSON"),
    "trailing text": (intent("1") + b" 1", 400, "not JSON"),
    "an array": (b"[]", 422, "must be a JSON object"),
    "null": (b"null", 422, "must be a JSON object"),
    "a text": (b'"po-1"', 422, "must be a JSON object"),
    "1e400": (intent("1e400"), 422, "range of a double"),
    "400 digits": (intent("9" * 400), 422, "range of a double"),
    "5,000 digits": (intent("9" * 5000), 422, "range of a double"),
    "lone surrogate": (intent('"\\ud800"'), 422, "lone surrogate"),
    "lone surrogate in a key": (intent('{"\\udc00": 1}'), 422, "lone surrogate"),
    "escaped NUL": (intent('"\\u0000"'), 422, "NUL"),
    "duplicate key": (order("po-1", ', "task_id": "po-2"'), 422, "twice"),
    "duplicate key deep": (intent('[{"a": 1, "a": 1}]'), 422, "twice"),
    "depth 65": (intent("[" * 64 + "]" * 64), 422, "deeper than 64"),
    "depth 957": (intent("[" * 957 + "]" * 957), 422, "deeper than 64"),
    "depth 10,000": (intent("[" * 10_000 + "]" * 10_000), 422, "deeper than 64"),
    "depth 100,000 unclosed": (b"[" * 100_000, 422, "more than 50,000 values"),
    "depth 50,000 unclosed": (b"[" * 50_000, 422, "deeper than 64"),
    "4 MiB of {}": (intent("[" + "{}," * 1_390_000 + "{}]"), 422, "more than 50,000 values"),
    "intent of 256 KiB and a byte": (intent('"' + "x" * (256 * 1024 - 8) + '"'), 422, "the limit is 262144"),
    "intent missing": (b'{"task_id": "po-1", "site": "rakuten"}', 422, "intent: Field required"),
    "intent an array": (b'{"task_id": "po-1", "site": "rakuten", "intent": []}', 422, "intent: "),
    "intent null": (b'{"task_id": "po-1", "site": "rakuten", "intent": null}', 422, "intent: "),
    "number as text": (b'{"task_id": 1, "site": "rakuten", "intent": {}}', 422, "task_id: "),
    "site missing": (b'{"task_id": "po-1", "intent": {}}', 422, "site: "),
    "task_id lease": (order("lease"), 422, "reserved"),
    "task_id discovery": (order("discovery"), 422, "reserved"),
    "task_id ..": (order(".."), 422, "task_id: "),
    "task_id empty": (order(""), 422, "task_id: "),
    "task_id of 129": (order("a" * 129), 422, "task_id: "),
    "task_id with a line end": (order("po-1\\n"), 422, "task_id: "),
    "callback ftp": (order("po-1", ', "callback_url": "ftp://x/"'), 422, "callback_url: "),
    "callback metadata": (order("po-1", ', "callback_url": "http://169.254.169.254/x"'), 422, "can never be called"),
    "callback relative": (order("po-1", ', "callback_url": "/x"'), 422, "callback_url: "),
}


async def test_a_bad_body_gets_its_answer_and_stores_nothing(gateway: RunningGateway, rest: httpx.AsyncClient) -> None:
    before = gateway.dump()
    for name, (body, status, words) in BODIES.items():
        answer = await post(rest, "/api/orders", body)
        told = envelope_of(answer)
        assert (name, answer.status_code, told["code"]) == (name, status, status)
        assert words in told["msg"], name
        assert len(told["msg"]) < 500
    assert gateway.dump() == before


async def test_what_is_at_the_limit_passes(rest: httpx.AsyncClient) -> None:
    deepest = intent("[" * 63 + "]" * 63)
    largest = intent('"' + "x" * (256 * 1024 - 9) + '"').replace(b"po-1", b"a" * 128)
    odd = intent('[1, 1.0, 1e308, -0.0, 123456789012345678901234567890, "\\u65e5\\ud83d\\ude00 \\n", null, {"": 0}]')
    for number, body in enumerate((deepest, largest, odd.replace(b"po-1", b"A.b_c-1"))):
        assert data_of(await post(rest, "/api/orders", body))["created"], number


async def test_a_body_of_another_type_is_refused(rest: httpx.AsyncClient) -> None:
    for content_type in (None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/x"):
        headers = {} if content_type is None else {"Content-Type": content_type}
        answer = await rest.post("/api/orders", content=intent("1"), headers=headers)
        assert (content_type, answer.status_code, envelope_of(answer)["code"]) == (content_type, 400, 400)
    fine = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert data_of(await rest.post("/api/orders", content=intent("1"), headers=fine))["created"]


LEASE = "/api/orders/lease?worker_id=w1&wait=0"
TARGETS: dict[str, int] = {
    "/": 404,
    "/api": 404,
    "/api/orders/": 404,
    "/api/orders/po-1/": 404,
    "/api/orders/po-1/nothing": 404,
    "/health/": 404,
    "/API/orders": 404,
    "/api/orders/..": 422,
    "/api/orders/%2e%2e": 422,
    "/api/orders/%2e%2e%2f%2e%2e%2fetc%2fpasswd": 404,
    "/api/orders/%00": 422,
    "/api/orders/%ff": 422,
    "/api/orders/" + "a" * 129: 422,
    "/api/orders?limit=0": 422,
    "/api/orders?limit=-1": 422,
    "/api/orders?limit=201": 422,
    "/api/orders?limit=1e2": 422,
    "/api/orders?limit=99999999999999999999999999": 422,
    "/api/orders?limit=": 422,
    "/api/orders?limit=1_0": 422,
    "/api/orders?limit=%2B5": 422,
    "/api/orders?limit=+5": 422,
    "/api/orders?limit=5%20": 422,
    "/api/orders?limit=5.0": 422,
    "/api/orders?limit=%EF%BC%95": 422,
    "/api/orders?limit=0x5": 422,
    "/api/orders?limit=05": 422,
    "/api/orders?limit=-0": 422,
    "/api/orders?offset=00": 422,
    "/api/orders?offset=0": 200,
    "/api%2forders": 404,
    "/api/orders%2Flease?worker_id=w1&wait=0": 404,
    "/api/orders/lease?worker_id=w1&wait=00": 422,
    "/api/orders/lease?worker_id=w1&wait=0.0": 200,
    "/api/orders?limit=1&limit=2": 422,
    "/api/orders?unknown=1&unknown=2": 200,
    "/api/orders?offset=1_0": 422,
    "/api/account/queries?limit=1_0": 422,
    "/api/orders?offset=-1": 422,
    "/api/orders?offset=x": 422,
    "/api/orders?offset=99999999999999999999999999": 200,
    "/api/orders?status=done": 422,
    "/api/orders?status=": 422,
    "/api/orders?site=elsewhere": 422,
    "/api/orders?unknown=1": 200,
    "/api/orders/lease": 422,
    "/api/orders/lease?worker_id=": 422,
    "/api/orders/lease?worker_id=..": 422,
    "/api/orders/lease?worker_id=w1&wait=-1": 422,
    "/api/orders/lease?worker_id=w1&wait=-0.001": 422,
    "/api/orders/lease?worker_id=w1&wait=x": 422,
    "/api/orders/lease?worker_id=w1&wait=nan": 422,
    "/api/orders/lease?worker_id=w1&wait=inf": 422,
    "/api/orders/lease?worker_id=w1&wait=1e400": 422,
    "/api/orders/lease?worker_id=w1&wait=": 422,
    "/api/orders/lease?worker_id=w1&wait=1_0": 422,
    "/api/orders/lease?worker_id=w1&wait=%2B0": 422,
    "/api/orders/lease?worker_id=w1&wait=.5": 422,
    "/api/orders/lease?worker_id=w1&wait=infinity": 422,
    "/api/orders/lease?worker_id=w1&worker_id=w2&wait=0": 422,
    LEASE: 200,
    "/api/account/queries?kind=nothing": 422,
    "/api/account/queries/..": 422,
}


async def test_a_bad_target_gets_its_answer(gateway: RunningGateway) -> None:
    for target, status in TARGETS.items():
        request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        answer = await exchange(gateway.http_port, request.encode())
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), (target, answer)
        assert body_of(answer)["code"] in (0, status)


async def test_too_long_a_wait_is_clamped_not_refused(rest: httpx.AsyncClient) -> None:
    await submit(rest)
    answer = await rest.get("/api/orders/lease?worker_id=w1&wait=1e300")
    assert data_of(answer)["task_id"] == "po-1"


async def test_other_methods_are_refused_with_what_is_allowed(rest: httpx.AsyncClient) -> None:
    for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "BREW"):
        answer = await rest.request(method, "/api/orders/po-1/renew")
        assert (method, answer.status_code, answer.headers["allow"]) == (method, 405, "POST")
        if method != "HEAD":
            assert envelope_of(answer)["code"] == 405


REPORTS: dict[str, dict[str, Any]] = {
    "state missing": {"state": None},
    "no order state": {"state": "needs_human"},
    "terminal_status without terminal": {"terminal_status": "failed"},
    "terminal_status no end": {"terminal": True, "terminal_status": "stale"},
    "payable_yen negative": {"payable_yen": -1},
    "payable_yen a text": {"payable_yen": "12800"},
    "payable_yen true": {"payable_yen": True},
    "payable_yen a fraction": {"payable_yen": 0.5},
    "payable_yen huge": {"payable_yen": 10**30},
    "time without offset": {"pay_deadline": "2026-07-30T14:59:00"},
    "a date": {"pay_deadline": "2026-07-30"},
    "no such day": {"pay_deadline": "2026-02-30T14:59:00Z"},
    "a number as time": {"pay_deadline": 1785423540},
    "beyond the calendar": {"pay_deadline": "9999-12-31T23:59:59-23:59"},
    "detail of 4,001": {"detail": "x" * 4001},
    "evidence_ref upwards": {"evidence_ref": "../etc/passwd"},
    "evidence_ref absolute": {"evidence_ref": "/etc/passwd"},
    "site_order_id empty": {"site_order_id": ""},
    "site_order_id with a line end": {"site_order_id": "1\n2"},
    "error_code huge": {"error_code": 2**63},
    "terminal a number": {"terminal": 1},
    "token of another form": {"lease_token": "short"},
}


async def test_a_bad_report_names_its_field_and_stores_nothing(
    gateway: RunningGateway, rest: httpx.AsyncClient
) -> None:
    await submit(rest)
    data_of(await rest.get(LEASE))
    before = gateway.dump()
    for name, fields in REPORTS.items():
        told = {"worker_id": "w1", "state": "in_cart"} | fields
        answer = await post(rest, "/api/orders/po-1/report", told)
        assert (name, answer.status_code, envelope_of(answer)["code"]) == (name, 422, 422)
        assert answer.json()["msg"].startswith(f"{list(fields)[-1]}: ")
    assert gateway.dump() == before


async def test_any_offset_is_normalised(rest: httpx.AsyncClient) -> None:
    await submit(rest)
    data_of(await rest.get(LEASE))
    times = {
        "2026-07-30T14:59:00Z": "2026-07-30T14:59:00.000000Z",
        "2026-07-30t14:59:00.5z": "2026-07-30T14:59:00.500000Z",
        "2026-07-30 23:59:00+09:00": "2026-07-30T14:59:00.000000Z",
        "0001-01-01T00:00:00+00:00": "0001-01-01T00:00:00.000000Z",
    }
    for given, utc in times.items():
        told = {"worker_id": "w1", "state": "ordered", "pay_deadline": given}
        data_of(await post(rest, "/api/orders/po-1/report", told))
        assert data_of(await rest.get("/api/orders/po-1"))["reports"][0]["pay_deadline"] == utc


JSON, PROTO = "application/json", "application/proto"


def http(method: str, *headers: str, body: bytes = b"") -> bytes:
    return "\r\n".join([f"{method} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode() + body


def chunked(body: bytes) -> bytes:
    return http("POST /api/orders", f"Content-Type: {JSON}", "Transfer-Encoding: chunked", body=body)


NO_HTTP: dict[str, tuple[bytes, int]] = {
    "no request line": (b"hello\r\n\r\n", 400),
    "HTTP/2 without TLS": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "no host": (b"GET /livez HTTP/1.1\r\n\r\n", 400),
    "two lengths": (http("POST /api/orders", "Content-Length: 1", "Content-Length: 2"), 400),
    "one length twice": (http("POST /api/orders", "Content-Length: 0", "content-length: 0"), 400),
    "one length twice in a line": (http("POST /api/orders", "Content-Length: 0, 0"), 400),
    "a chunk's extension with half a line end": (chunked(b"5;a\rb\r\nhello\r\n0\r\n\r\n"), 400),
    "a trailer with half a line end": (chunked(b"0\r\nX: 1\nY: 2\r\n\r\n"), 400),
    "trailers that end in halves": (chunked(b"0\r\nX: 1\n\n"), 400),
    "a trailer that is folded": (chunked(b"0\r\nX: 1\r\n 2\r\n\r\n"), 400),
    "something else is expected": (http("GET /livez", "Expect: 200-maybe"), 417),
    "two things are expected": (http("GET /livez", "Expect: 100-continue", "Expect: 100-continue"), 400),
    "length no number": (http("POST /api/orders", "Content-Length: -1"), 400),
    "unknown encoding": (http("POST /api/orders", "Transfer-Encoding: zip"), 501),
    "header of 64 KiB": (http("GET /livez", "X: " + "a" * 65_536), 431),
    "header of 1 MiB": (b"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + b"a" * MIB, 431),
    "request line of 64 KiB": (b"GET /" + b"a" * 65_536, 431),
}


async def test_what_is_no_http_is_told_in_the_envelope_too(gateway: RunningGateway) -> None:
    for name, (request, status) in NO_HTTP.items():
        answer = await exchange(gateway.http_port, request)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), (name, answer)
        assert body_of(answer)["code"] == status


async def test_chunks_with_extensions_and_trailers_are_taken(gateway: RunningGateway) -> None:
    body = order("po-1")
    pieces = b"%x;a=b\r\n%b\r\n0\r\nX: 1\r\nY: 2\r\n\r\n" % (len(body), body)
    request = chunked(pieces).replace(b"Host:", b"Connection: close\r\nHost:")
    assert body_of(await exchange(gateway.http_port, request))["data"]["created"]
    expecting = http("GET /api/orders", "Expect: 100-Continue", "Connection: close")
    assert (await exchange(gateway.http_port, expecting)).startswith(b"HTTP/1.1 200 ")


async def test_nothing_is_served_on_a_connection_that_was_to_be_a_tunnel(gateway: RunningGateway) -> None:
    behind = http("GET /api/orders", "Connection: close")
    answer = await exchange(gateway.http_port, http("CONNECT shop.example:443") + behind)
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_parameter_of_connect_stands_once(rest: httpx.AsyncClient) -> None:
    await submit(rest)
    path = "/ordergateway.v1.OrderService/GetOrder?connect=v1&encoding=json"
    assert (await rest.get(path + '&message={"taskId":"po-1"}')).json()["task"]["taskId"] == "po-1"
    twice = await rest.get(path + '&message={"taskId":"po-1"}&message={"taskId":"po-2"}')
    assert (twice.status_code, envelope_of(twice)["code"]) == (400, 400)


async def test_headers_beyond_ascii_and_grpc_on_this_port_are_refused(gateway: RunningGateway) -> None:
    plain = ("Connection: close", "Content-Length: 0")
    answer = await exchange(gateway.http_port, http(f"POST {SUBMIT_RPC}", *plain, "Content-Type: application/grpc"))
    assert (body_of(answer)["code"], answer[:12]) == (415, b"HTTP/1.1 415")
    name = http(f"POST {SUBMIT_RPC}", *plain, "X-Name: ?").replace(b"?", b"\xe9")
    answer = await exchange(gateway.http_port, name)
    assert (body_of(answer)["code"], answer[:12]) == (400, b"HTTP/1.1 400")


async def test_without_a_token_no_foreign_page_gets_in(gateway: RunningGateway, rest: httpx.AsyncClient) -> None:
    foreign: list[dict[str, str]] = [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Host": "evil.example"},
    ]
    for headers in foreign:
        answer = await rest.get(LEASE, headers=headers)
        assert (answer.status_code, envelope_of(answer)["code"]) == (403, 403)
    own = {"Sec-Fetch-Site": "same-origin", "Origin": f"http://127.0.0.1:{gateway.http_port}"}
    data_of(await rest.get(LEASE, headers=own))


CONNECT: dict[str, tuple[bytes, str, str, int]] = {
    "no JSON": (b"{", JSON, "invalid_argument", 400),
    "invalid UTF-8": (b'{"taskId": "\xff"}', JSON, "invalid_argument", 400),
    "no message": (b"\xff\xff", PROTO, "invalid_argument", 400),
    "depth 10,000": (b'{"x":' + b"[" * 10_000 + b"]" * 10_000 + b"}", JSON, "invalid_argument", 400),
    "lone surrogate": (b'{"taskId": "\\ud800"}', JSON, "invalid_argument", 400),
    "duplicate key": (b'{"taskId": "a", "taskId": "b"}', JSON, "invalid_argument", 400),
    "bad field": (b'{"taskId": "..", "site": "rakuten", "intentJson": "{}"}', JSON, "invalid_argument", 400),
    "5 MiB": (b"x" * (5 * MIB), PROTO, "resource_exhausted", 429),
}


async def test_bad_input_over_connect(gateway: RunningGateway, rest: httpx.AsyncClient) -> None:
    before = gateway.dump()
    for name, (body, content_type, code, status) in CONNECT.items():
        answer = await rest.post(SUBMIT_RPC, content=body, headers={"Content-Type": content_type})
        assert (name, answer.status_code, answer.json()["code"]) == (name, status, code)
        assert [each["type"] for each in answer.json()["details"]] == ["ordergateway.v1.ErrorDetail"]
    assert gateway.dump() == before


def memory_of(process: GatewayProcess) -> float:
    return psutil.Process(process.process.pid).memory_info().rss / MIB


@pytest.mark.extended
async def test_memory_stays_flat_under_what_is_too_large(process: GatewayProcess) -> None:
    """100 MB with and without a declared length, over REST and Connect, and a gzip bomb of 100 MB."""
    bomb = gzip.compress(b"\0" * 100 * MIB)
    assert len(bomb) < MIB

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1600):
            yield b" " * 65_536

    async def refused(path: str, content: Any, **headers: str) -> int | None:
        async with rest_client(process.http_port) as client:
            try:
                answer = await client.post(path, content=content, headers={"Content-Type": JSON} | headers)
            except httpx.TransportError:
                return None  # it was cut off while it was still sending
            return answer.status_code

    assert await refused("/api/orders", b" " * MIB) == 400
    before = memory_of(process)
    declared = str(100 * MIB)
    statuses = await asyncio.gather(
        *(refused("/api/orders", endless()) for _ in range(4)),
        refused("/api/orders", endless(), **{"Content-Length": declared}),
        *(refused(SUBMIT_RPC, endless()) for _ in range(4)),
        refused(SUBMIT_RPC, endless(), **{"Content-Length": declared}),
    )
    assert set(statuses) <= {413, 429, None}
    assert await refused(SUBMIT_RPC, bomb, **{"Content-Encoding": "gzip"}) == 429
    assert await refused("/api/orders", bomb, **{"Content-Encoding": "gzip"}) == 400
    assert memory_of(process) - before < 60


async def test_a_declared_length_is_refused_before_a_byte_of_the_body_comes(gateway: RunningGateway) -> None:
    head = http("POST /api/orders", f"Content-Type: {JSON}", f"Content-Length: {100 * MIB}", "Connection: close")
    answer = await exchange(gateway.http_port, head)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert body_of(answer) == {
        "success": False, "msg": "the body is larger than 4,194,304 bytes", "data": None, "code": 413,
    }  # fmt: skip
