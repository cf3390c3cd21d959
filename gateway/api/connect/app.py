"""The contract's services on connectrpc's generated applications, all but the workers' streams."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from connectrpc.codec import Codec
from connectrpc.server import ConnectASGIApplication
from ordergateway.v1 import account_queries_connect, catalog_connect, operations_connect, orders_connect
from starlette.types import ASGIApp

from gateway.api.auth.admission import Admission
from gateway.api.call import Method, methods_of
from gateway.api.connect.codecs import BinaryCodec, StrictJsonCodec
from gateway.api.connect.encoding import PreparedGzip, Preparing
from gateway.api.connect.errors import ToldASGIApplication
from gateway.api.connect.interceptor import ConnectInterceptor, call_now
from gateway.api.services import Services

CONNECT_SERVICES: Final[Mapping[str, tuple[type[Any], type[ConnectASGIApplication[Any]]]]] = MappingProxyType(
    {
        "ordergateway.v1.OrderService": (orders_connect.OrderService, orders_connect.OrderServiceASGIApplication),
        "ordergateway.v1.AccountQueryService": (
            account_queries_connect.AccountQueryService,
            account_queries_connect.AccountQueryServiceASGIApplication,
        ),
        "ordergateway.v1.CatalogService": (
            catalog_connect.CatalogService,
            catalog_connect.CatalogServiceASGIApplication,
        ),
        "ordergateway.v1.OperationsService": (
            operations_connect.OperationsService,
            operations_connect.OperationsServiceASGIApplication,
        ),
    }
)
"""Service to its generated protocol, whose methods answer UNIMPLEMENTED, and its application."""


def connect_apps(services: Services, admission: Admission, max_message_bytes: int) -> Mapping[str, ASGIApp]:
    """Return the applications by the first part of their paths, `/package.Service`."""
    apps: dict[str, ASGIApp] = {}
    codecs: list[Codec[Any, Any]] = [BinaryCodec[Any](), StrictJsonCodec[Any](max_message_bytes)]
    preparing = Preparing({codec.name(): codec for codec in codecs})
    for descriptor, service in services.offered():
        generated = CONNECT_SERVICES.get(descriptor.full_name)
        if generated is None:
            continue
        protocol, application = generated
        offered = {method.attribute: _served(method, preparing) for method in methods_of(service, descriptor)}
        adapter = type(descriptor.name, (protocol,), offered)()
        served: Any = type(application.__name__, (ToldASGIApplication, application), {})
        apps[f"/{descriptor.full_name}"] = served(
            adapter,
            interceptors=[ConnectInterceptor(admission)],
            read_max_bytes=max_message_bytes,
            codecs=codecs,
            compressions=[PreparedGzip()],
        )
    return MappingProxyType(apps)


def _served(offered: Method, preparing: Preparing) -> Any:
    """Give a service's method the form that connectrpc calls; a stream's method returns its iterator either way."""
    prepared = preparing.each if offered.streams else preparing.one

    def method(_self: object, request: Any, context: object) -> Any:
        return prepared(offered.serve(request, call_now()), context)

    return method
