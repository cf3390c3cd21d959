"""Traces of the gateway with OpenTelemetry (common/tracing.py says when).

The trace of the call that filed a task is kept with the task and handed to the worker with each lease, so that one
trace reaches from the submission to the last report, over both machines.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import grpc
from starlette.types import ASGIApp

from common.tracing import shut_down, tracer_provider

SERVICE_NAME: Final = "order-gateway"
_NOT_TRACED: Final = "livez,readyz,metrics"


class Tracing(Protocol):
    """What the gateway asks of traces."""

    def interceptors(self) -> Sequence[grpc.aio.ServerInterceptor]:
        """Return what has to see every gRPC call."""
        ...

    def traced(self, app: ASGIApp) -> ASGIApp:
        """Return the application with every request traced."""
        ...

    def current(self) -> str:
        """Return the running span as a W3C traceparent; "" if there is none."""
        ...

    def close(self) -> None:
        """Send what has not been sent yet, for a limited time."""
        ...


class NoTracing:
    """Traces are off."""

    def interceptors(self) -> Sequence[grpc.aio.ServerInterceptor]:
        """Return nothing: an interceptor would cost every call."""
        return ()

    def traced(self, app: ASGIApp) -> ASGIApp:
        """Return the application itself."""
        return app

    def current(self) -> str:
        """Return "": the caller's own traceparent is kept with the task."""
        return ""

    def close(self) -> None:
        """Do nothing."""


class OpenTelemetry:
    """Traces through a tracer provider of the OpenTelemetry SDK."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def interceptors(self) -> Sequence[grpc.aio.ServerInterceptor]:
        """Return the standard instrumentation's interceptor."""
        from opentelemetry.instrumentation.grpc import aio_server_interceptor  # noqa: PLC0415 - of the extra

        interceptor: grpc.aio.ServerInterceptor = aio_server_interceptor(self._provider)  # type: ignore[no-untyped-call]
        return (interceptor,)

    def traced(self, app: ASGIApp) -> ASGIApp:
        """Return the application within the standard instrumentation's middleware."""
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware  # noqa: PLC0415 - of the extra

        wrapped: Any = OpenTelemetryMiddleware(app, excluded_urls=_NOT_TRACED, tracer_provider=self._provider)
        return wrapped  # type: ignore[no-any-return]

    def current(self) -> str:
        """Return the running span."""
        from opentelemetry.trace import get_current_span  # noqa: PLC0415 - of the extra

        context = get_current_span().get_span_context()
        if not context.is_valid:
            return ""
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def close(self) -> None:
        """Shut the provider down."""
        shut_down(self._provider)


def set_up_tracing() -> Tracing:
    """Return traces as the OTEL_* variables ask for them."""
    provider = tracer_provider(SERVICE_NAME)
    return NoTracing() if provider is None else OpenTelemetry(provider)
