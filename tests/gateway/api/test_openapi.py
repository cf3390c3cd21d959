"""The OpenAPI document: its committed copy, and generated requests that find no fault."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from scripts.openapi import served_document
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.in_thread import gateway_in_thread
from tests.gateway.support.rest_api import envelope_of, rest_client

COPY = Path(__file__).parents[3] / "docs" / "openapi.json"


async def test_the_committed_copy_is_what_is_served() -> None:
    """If this fails: `.venv/bin/python scripts/openapi.py > docs/openapi.json`."""
    assert json.loads(COPY.read_text()) == await served_document()


def test_every_operation_is_described_and_every_field_of_a_body_has_its_meaning() -> None:
    document = json.loads(COPY.read_text())
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations) >= 17
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (operation["operationId"], parameter["name"])
    schemas = document["components"]["schemas"]
    assert schemas["Submit"]["properties"]["intent"]["examples"]
    assert schemas["Report"]["properties"]["pay_deadline"]["description"]
    assert schemas["Failure"]["properties"]["code"]["description"]


async def test_the_examples_of_the_bodies_can_be_sent_as_they_stand_to_a_gateway_of_any_site(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, sites=("sandbox",)) as gateway, rest_client(gateway.http_port) as client:
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
        for path, schema in (("/api/orders", "Submit"), ("/api/account/queries", "SubmitQuery")):
            (example,) = schemas[schema]["examples"]
            answer = await client.post(path, json=example)
            assert answer.json()["data"]["created"], answer.text
        document = (await client.get("/openapi.json")).json()
        bodies = 0
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
                if schema is None:
                    continue
                bodies += 1
                name = schema.get("anyOf", [schema])[0]["$ref"].rpartition("/")[2]
                (example,) = schemas[name].get("examples", [{}])
                answer = await client.request(method, re.sub("{[a-z_]+}", "po-1", path), json=example)
                assert answer.status_code != 422, (path, answer.text)
        assert bodies == 8
    assert schemas["Submit"]["examples"][0]["task_id"], "without one a lost answer could not be asked for again"
    assert schemas["Submit"]["properties"]["site"]["examples"] == ["sandbox"]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with gateway_in_thread(tmp_path_factory.mktemp("gateway")) as port:
        yield f"http://127.0.0.1:{port}"


OPERATIONS = [
    (path, method.upper()) for path, methods in json.loads(COPY.read_text())["paths"].items() for method in methods
]


@pytest.fixture(scope="module")
def schema() -> Any:
    import schemathesis  # noqa: PLC0415 - it takes more than a second, and one process of the suite needs it

    return schemathesis.openapi.from_dict(json.loads(COPY.read_text()))


@pytest.mark.extended
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_generated_requests_find_no_fault(schema: Any, address: str, path: str, method: str) -> None:
    """No 500, no status and no body that the document does not tell, no answer outside the envelope."""
    from schemathesis.specs.openapi.checks import (  # noqa: PLC0415 - as above
        response_schema_conformance,
        status_code_conformance,
    )

    @given(case=schema[path][method].as_strategy())
    @settings(
        max_examples=4,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    def find_no_fault(case: Any) -> None:
        if "/lease" in case.path:
            case.query = {**(case.query or {}), "wait": "0"}
        answer = case.call(base_url=address)
        assert answer.status_code < 500 or answer.status_code == 501, answer.text
        told = httpx.Response(answer.status_code, headers={"content-type": "application/json"}, content=answer.content)
        envelope_of(told)
        case.validate_response(answer, checks=[status_code_conformance, response_schema_conformance])

    find_no_fault()
