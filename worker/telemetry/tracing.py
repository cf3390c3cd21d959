"""Traces with OpenTelemetry (extra `otel`), set up by its own OTEL_* variables; nothing is loaded while they are unset.

An order continues the trace that came with its lease, so that one trace reaches from the submission to the last report.
Only calls to the gateway carry it: a site is told nothing.
"""

import logging
import os
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import grpc

log = logging.getLogger(__name__)

SERVICE_NAME = "order-worker"
FLUSH_SECONDS = 2.0
_SWITCHES = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Tracing(Protocol):
    """What the worker asks of traces."""

    def interceptors(self) -> Sequence[grpc.aio.ClientInterceptor]:
        """What has to see every call to the gateway."""
        ...

    def order(self, task_id: str, site: str, traceparent: str) -> AbstractContextManager[object]:
        """A span around everything that is done for one lease of a task; `traceparent` came with the lease."""
        ...

    def close(self) -> None:
        """Sends what has not been sent yet, for a limited time."""
        ...


class NoTracing:
    """Traces are off."""

    def interceptors(self) -> Sequence[grpc.aio.ClientInterceptor]:
        """None: an interceptor would cost every call."""
        return ()

    def order(self, task_id: str, site: str, traceparent: str) -> AbstractContextManager[object]:
        """Nothing around it."""
        del task_id, site, traceparent
        return nullcontext()

    def close(self) -> None:
        """Does nothing."""


class OpenTelemetry:
    """Traces through a tracer provider of the OpenTelemetry SDK."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("order-worker")

    def interceptors(self) -> Sequence[grpc.aio.ClientInterceptor]:
        """The standard instrumentation's interceptors."""
        from opentelemetry.instrumentation.grpc import aio_client_interceptors  # noqa: PLC0415 - of the extra

        interceptors: Sequence[grpc.aio.ClientInterceptor]
        interceptors = aio_client_interceptors(self._provider)  # type: ignore[no-untyped-call]
        return interceptors

    def order(self, task_id: str, site: str, traceparent: str) -> AbstractContextManager[object]:
        """See Tracing."""
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        parent = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
        attributes = {"order.task_id": task_id, "order.site": site}
        span: AbstractContextManager[object] = self._tracer.start_as_current_span(
            "order", context=parent, attributes=attributes
        )
        return span

    def close(self) -> None:
        """Shuts the provider down, in a thread that does not hold up the process's end."""
        ending = threading.Thread(target=self._provider.shutdown, name="traces-flush", daemon=True)
        ending.start()
        ending.join(FLUSH_SECONDS)


def set_up_tracing() -> Tracing:
    """Reads the OTEL_* variables; traces are off unless they name an exporter or its address."""
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower()
    wanted = any(os.environ.get(name) for name in _SWITCHES) and exporter != "none"
    if not wanted or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return NoTracing()
    try:
        return OpenTelemetry(_provider(exporter))
    except ImportError as error:
        log.warning("OTEL_* variables are set, but %s is missing; install the extra otel", error.name)
        return NoTracing()


def _provider(exporter: str) -> Any:
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - of the extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - of the extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter  # noqa: PLC0415

    name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": SERVICE_NAME}
    provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False)
    chosen: SpanExporter
    if exporter == "console":
        chosen = ConsoleSpanExporter()
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        chosen = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(chosen))
    return provider
