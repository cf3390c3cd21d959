"""Traces of the worker with OpenTelemetry (common/tracing.py says when).

An order continues the trace that came with its lease, so that one trace reaches from the submission to the last report.
Only calls to the gateway carry it: a site is told nothing.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import grpc

from common.tracing import shut_down, tracer_provider

SERVICE_NAME = "order-worker"


class Tracing(Protocol):
    """What the worker asks of traces."""

    def interceptors(self) -> Sequence[grpc.aio.ClientInterceptor]:
        """Return what has to see every call to the gateway."""
        ...

    def order(self, task_id: str, site: str, traceparent: str) -> AbstractContextManager[object]:
        """Return a span around everything that is done for one lease of a task; `traceparent` came with the lease."""
        ...

    def close(self) -> None:
        """Send what has not been sent yet, for a limited time."""
        ...


class NoTracing:
    """Traces are off."""

    def interceptors(self) -> Sequence[grpc.aio.ClientInterceptor]:
        """Return nothing: an interceptor would cost every call."""
        return ()

    def order(self, task_id: str, site: str, traceparent: str) -> AbstractContextManager[object]:
        """Return nothing around it."""
        del task_id, site, traceparent
        return nullcontext()

    def close(self) -> None:
        """Do nothing."""


class OpenTelemetry:
    """Traces through a tracer provider of the OpenTelemetry SDK."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("order-worker")

    def interceptors(self) -> Sequence[grpc.aio.ClientInterceptor]:
        """Return the standard instrumentation's interceptors."""
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
        """Shut the provider down."""
        shut_down(self._provider)


def set_up_tracing() -> Tracing:
    """Return traces as the OTEL_* variables ask for them."""
    provider = tracer_provider(SERVICE_NAME)
    return NoTracing() if provider is None else OpenTelemetry(provider)
