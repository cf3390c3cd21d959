"""Log lines have fields, and every line of a call its name."""

import json
import logging
from collections.abc import Iterator

import httpx
import pytest

from common.logs import JsonFormatter, TextFormatter
from gateway.logs import set_up_logs
from gateway.request_id import begin_request, current_request_id
from tests.gateway.support.in_process import RunningGateway


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def record(**fields: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "gateway.x", "levelname": "INFO", "msg": "it is %s", "args": ("so",)})
    vars(made).update(fields)
    return made


def test_fields_in_both_forms() -> None:
    line = TextFormatter().format(record(task_id="po-1", note="two words"))
    assert line.endswith('INFO    it is so task_id=po-1 note="two words"')
    entry = json.loads(JsonFormatter().format(record(task_id="po-1")))
    assert entry["message"] == "it is so"
    assert entry["task_id"] == "po-1"
    assert entry["logger"] == "gateway.x"


@pytest.mark.parametrize(
    ("told", "kept"), [("abc-1", True), ("a b", False), ("x" * 65, False), ("", False), (None, False)]
)
def test_the_name_of_a_call(told: str | None, kept: bool) -> None:
    name = begin_request(told)
    assert current_request_id() == name
    assert (name == told) is kept
    assert len(name) <= 64


async def test_a_request_is_found_by_its_name(
    gateway: RunningGateway, capsys: pytest.CaptureFixture[str], restored: None
) -> None:
    set_up_logs("json", "INFO")
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{gateway.http_port}", trust_env=False, timeout=60
    ) as client:
        for intent in ({}, {"other": 1}):
            body = {"task_id": "po-1", "site": "rakuten", "intent": intent}
            answer = await client.post("/api/orders", json=body, headers={"x-request-id": "of-the-upstream"})
            assert answer.headers["x-request-id"] == "of-the-upstream"
        other = await client.get("/health")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    access = [line for line in lines if line["logger"] == "gateway.access"]
    assert [line["request_id"] for line in access] == [
        "of-the-upstream",
        "of-the-upstream",
        other.headers["x-request-id"],
    ]
    (again,) = [line for line in lines if "another intent" in line["message"]]
    assert again["task_id"] == "po-1"
