"""An intent comes back value for value, byte for byte (docs/specification.md#submission)."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.domain.test_json_text import OBJECTS
from tests.gateway.support.grpc_api import GrpcApi, connected
from tests.gateway.support.grpc_core import grpc_core
from tests.gateway.support.in_process import RunningGateway

INTENTS = [
    '{"id": 12345678901234567890, "big": 123456789012345678901234567890}',
    '{"one": 1, "point": 1.0, "more": 1.00, "e": 1e0, "minus": -0.0, "small": 5e-324}',
    '{"nothing": null, "no": false, "list": [null, [], {}]}',
    '{"emoji": "😀👩‍👩‍👧", "escaped": "\\ud83d\\ude00", "名": "値", "slash": "\\/ \\u002f /"}',
    '{"z": 1, "a": 2, "m": {"z": 1, "a": 2}}',
    '{ "spaces" :\t[ 1 , 2 ]\r\n}',
    '{"unknown": {"of": ["any", {"kind": 1}]}}',
    '{"constructor": 1, "__proto__": 2, "": 3}',
    "{}",
]


@pytest.mark.parametrize("intent", INTENTS)
async def test_an_intent_comes_back_in_every_answer_as_it_was_sent(api: GrpcApi, intent: str) -> None:
    await api.submit("po-1", intent)
    again = await api.submit("po-1", intent)
    assert (again.created, again.intent_matches) == (False, True)
    assert (await api.task()).intent_json == intent
    assert (await api.list()).tasks[0].intent_json == intent
    lease = await api.lease()
    assert lease is not None
    assert lease.intent_json == intent
    await api.renew(lease)
    assert (await api.health()).active_tasks[0].intent_json == intent


async def test_key_order_aside_the_same_intent_matches(api: GrpcApi) -> None:
    await api.submit("po-1", '{"a": 1, "b": [1.0, "é"]}')
    assert (await api.submit("po-1", '{"b":[1.00,"\\u00e9"],"a":1}')).intent_matches
    for other in ('{"a": 1.0, "b": [1.0, "é"]}', '{"a": 1, "b": [1, "é"]}', '{"a": 1, "b": ["é", 1.0]}', '{"a": 1}'):
        assert not (await api.submit("po-1", other)).intent_matches, other


@settings(max_examples=10, deadline=None)
@given(st.lists(OBJECTS, min_size=1, max_size=40))
def test_any_json_object_comes_back_as_it_was_sent(objects: list[dict[str, object]]) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with grpc_core(Path(folder) / "gateway.db") as served, connected(served.port) as api:
                for number, value in enumerate(objects):
                    text = json.dumps(value, ensure_ascii=bool(number % 2))
                    assert (await api.submit(f"po-{number}", text)).created
                    task = await api.task(f"po-{number}")
                    assert task.intent_json == text
                    assert json.loads(task.intent_json) == value

    asyncio.run(run())


async def test_a_page_of_the_largest_intents_fits_a_client_with_the_default_limit(
    gateway: RunningGateway, api: GrpcApi
) -> None:
    intent = '{"note": "' + "x" * 200_000 + '"}'
    names = [f"po-{number}" for number in range(30)]
    for name in names:
        await api.submit(name, intent)
    seen: list[str] = []
    token = ""
    while True:
        page = await api.list(page_size=200, page_token=token)
        assert page.tasks
        seen += [task.task_id for task in page.tasks]
        token = page.next_page_token
        if not token:
            break
    assert seen == names[::-1]
