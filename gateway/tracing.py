"""Traces with OpenTelemetry (extra `otel`), set up by its own OTEL_* variables; nothing is loaded while they are unset.

The trace of the call that filed a task is kept with the task and handed to the worker with each lease, so that one
trace reaches from the submission to the last report, over both machines.
"""

import logging
import os
import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

import grpc
from starlette.types import ASGIApp

SERVICE_NAME: Final = "order-gateway"
FLUSH_SECONDS: Final = 2.0
_NOT_TRACED: Final = "livez,readyz,metrics"
_SWITCHES: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_log = logging.getLogger(__name__)


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
        """Shut the provider down, in a thread that does not hold up the process's end."""
        ending = threading.Thread(target=self._provider.shutdown, name="traces-flush", daemon=True)
        ending.start()
        ending.join(FLUSH_SECONDS)


def set_up_tracing() -> Tracing:
    """Read the OTEL_* variables; traces are off unless they name an exporter or its address."""
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower()
    wanted = any(os.environ.get(name) for name in _SWITCHES) and exporter != "none"
    if not wanted or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return NoTracing()
    try:
        return OpenTelemetry(_provider(exporter))
    except ImportError as error:
        _log.warning("OTEL_* variables are set, but %s is missing; install the extra otel", error.name)
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
