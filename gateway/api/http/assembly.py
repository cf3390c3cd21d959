"""Puts the applications of the HTTP port together."""

from collections.abc import Sequence

from fastapi import APIRouter

from gateway.api.auth.admission import Admission
from gateway.api.connect.app import connect_apps
from gateway.api.http.app import HttpApp
from gateway.api.rest.app import rest_app
from gateway.api.services import Services


def http_app(
    services: Services, routers: Sequence[APIRouter], admission: Admission, max_body_bytes: int, site: str
) -> HttpApp:
    """Make the one application: `services` over Connect, `routers` as the REST facade, whose examples name `site`."""
    return HttpApp(
        rest_app(routers, admission, max_body_bytes, site),
        connect_apps(services, admission, max_body_bytes),
        admission,
    )
