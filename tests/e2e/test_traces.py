"""One trace from the submission to the last report, over both parts; and nothing of it where nobody asked for it."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from ordergateway.v1 import orders_pb2

from gateway import tracing as gateway_tracing
from tests.gateway.support.in_process import running_gateway
from tests.worker.conftest import make_settings
from tests.worker.running_shop import running_shop
from worker.main import run_worker
from worker.telemetry import tracing as worker_tracing

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLERS = f"00-{TRACE}-b7ad6b7169203331-01"


class Collected:
    """The spans of one part."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def spans(self, trace: str = TRACE) -> list[ReadableSpan]:
        found = []
        for span in self.exporter.get_finished_spans():
            assert span.context is not None
            if f"{span.context.trace_id:032x}" == trace:
                found.append(span)
        return found

    def methods(self) -> set[str]:
        return {span.name.rpartition("/")[2] for span in self.spans()}


async def test_one_trace_over_both_parts(tmp_path: Path) -> None:
    there, here = Collected(), Collected()
    async with (
        running_gateway(tmp_path, tracing=gateway_tracing.OpenTelemetry(there.provider)) as gateway,
        running_shop() as shop,
    ):
        request = orders_pb2.SubmitOrderRequest(
            task_id="po-1", site="sandbox", intent_json=f'{{"item_url": "{shop.item_url("sencha-100g")}"}}'
        )
        await gateway.api.orders.SubmitOrder(request, metadata=(("traceparent", CALLERS),))
        stop = asyncio.Event()
        settings = make_settings(
            tmp_path,
            order_gateway_url=f"grpc://127.0.0.1:{gateway.port}",
            sandbox_url=shop.url,
            scraper_base_url=shop.url,
            scraper_token="sandbox-token",
        )
        worker = asyncio.create_task(
            run_worker(settings, stop=stop, tracing=worker_tracing.OpenTelemetry(here.provider))
        )
        async with asyncio.timeout(30):
            async for message in gateway.api.watch("po-1"):
                if message.task.status == orders_pb2.TASK_STATUS_SUCCEEDED:
                    break
        stop.set()
        await worker
        (order,) = [span for span in here.spans() if span.name == "order"]
        (submitted,) = [span for span in there.spans() if span.name.endswith("SubmitOrder")]
        stored = gateway.rows("SELECT traceparent FROM tasks")[0]["traceparent"]
    assert submitted.parent is not None
    assert f"{submitted.parent.span_id:016x}" == CALLERS.split("-")[2], "the caller's span is the parent"
    assert submitted.context is not None
    assert stored == f"00-{TRACE}-{submitted.context.span_id:016x}-01"
    assert order.parent is not None
    assert order.parent.span_id == submitted.context.span_id
    assert order.attributes == {"order.task_id": "po-1", "order.site": "sandbox"}
    calls = {"RenewLease", "RequestSubmitPermit", "ReportOrder"}
    assert calls <= here.methods()
    assert calls <= there.methods()
    spans = {span.context.span_id for span in here.spans() + there.spans() if span.context is not None}
    for span in there.spans():
        assert span.parent is not None
        assert span is submitted or span.parent.span_id in spans, "no link is missing"


async def test_over_http_too(tmp_path: Path) -> None:
    import httpx  # noqa: PLC0415

    there = Collected()
    async with running_gateway(tmp_path, tracing=gateway_tracing.OpenTelemetry(there.provider)) as gateway:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{gateway.http_port}", trust_env=False, timeout=60
        ) as client:
            body = {"task_id": "po-1", "site": "rakuten", "intent": {}}
            answer = await client.post("/api/orders", json=body, headers={"traceparent": CALLERS})
            assert answer.status_code == 200, answer.text
            await client.get("/livez")
        stored = gateway.rows("SELECT traceparent FROM tasks")[0]["traceparent"]
    assert stored.startswith(f"00-{TRACE}-")
    assert stored != CALLERS
    assert not [span for span in there.exporter.get_finished_spans() if "livez" in span.name]


async def test_without_traces_the_callers_own_context_is_passed_on(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        request = orders_pb2.SubmitOrderRequest(task_id="po-1", site="rakuten", intent_json="{}")
        await gateway.api.orders.SubmitOrder(request, metadata=(("traceparent", CALLERS),))
        lease = await gateway.api.lease()
    assert lease is not None
    assert lease.traceparent == CALLERS


@pytest.mark.parametrize("module", [gateway_tracing, worker_tracing])
@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_off_unless_asked_for(
    module: object, variables: dict[str, str], on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    tracing = module.set_up_tracing()  # type: ignore[attr-defined]
    assert isinstance(tracing, module.OpenTelemetry) is on  # type: ignore[attr-defined]
    tracing.close()


def test_nothing_is_loaded_while_they_are_off() -> None:
    heavy = ("opentelemetry.sdk", "opentelemetry.instrumentation", "opentelemetry.exporter")
    code = (
        "import sys, gateway.main, worker.main; from gateway.tracing import set_up_tracing; set_up_tracing(); "
        f"print([name for name in sys.modules if name.startswith({heavy!r})])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
