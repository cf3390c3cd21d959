"""Puts the applications of the HTTP port together."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.types import ASGIApp

from gateway.api.auth.admission import Admission
from gateway.api.connect.app import connect_apps
from gateway.api.http.app import HttpApp
from gateway.api.rest.app import rest_app
from gateway.api.services import Services


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The largest request bodies, in bytes after decompression."""

    rest: int
    connect: int


def http_app(
    services: Services,
    routers: Sequence[APIRouter],
    console: ASGIApp,
    admission: Admission,
    limits: BodyLimits,
    site: str,
) -> HttpApp:
    """Make the one application: `services` over Connect, `routers` as the REST facade, whose examples name `site`."""
    return HttpApp(
        rest_app(routers, admission, limits.rest, site),
        connect_apps(services, admission, limits.connect),
        console,
        admission,
    )
