"""OpenTelemetry (extra `otel`), set up by its own OTEL_* variables; nothing is loaded while they are unset."""

import logging
import os
import threading
from typing import Any, Final

FLUSH_SECONDS: Final = 2.0
"""How long the end of a process waits for spans to be sent."""

_SWITCHES: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_log = logging.getLogger(__name__)


def tracer_provider(service_name: str) -> Any | None:
    """Return a tracer provider of the SDK as the OTEL_* variables describe it; `service_name` unless they name one.

    None unless they name an exporter or its address, and, with a warning, where the extra is not installed.
    """
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower()
    switched_on = any(os.environ.get(name) for name in _SWITCHES) and exporter != "none"
    if not switched_on or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        return _provider(service_name, exporter)
    except ImportError as error:
        _log.warning("OTEL_* variables are set, but %s is missing; install the extra otel", error.name)
        return None


def shut_down(provider: Any) -> None:
    """Send what has not been sent yet, in a thread that holds up the process's end for FLUSH_SECONDS at most."""
    ending = threading.Thread(target=provider.shutdown, name="traces-flush", daemon=True)
    ending.start()
    ending.join(FLUSH_SECONDS)


def _provider(service_name: str, exporter: str) -> Any:
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - of the extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - of the extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter  # noqa: PLC0415

    name = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": service_name}
    provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False)
    chosen: SpanExporter
    if exporter == "console":
        chosen = ConsoleSpanExporter()
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        chosen = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(chosen))
    return provider
