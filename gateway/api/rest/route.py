"""What every REST request passes: who calls and may they, before a byte of the body is read; then a strict body."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator
from typing import Any, ClassVar, Final

from fastapi import Request, Response
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import sole_authorization
from gateway.api.call import Call
from gateway.api.offload import checked
from gateway.api.rest.envelope import ProblemError, failure, problem
from gateway.domain.json_text import JsonSyntaxError, JsonTextError, Member, parse_members
from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid

BODY_SECONDS: Final = 30.0
"""How long a client may take to send its body."""

MIRRORS: Final = "x-mirrors"
"""Key in a route's OpenAPI: the contract's method that it mirrors, whose roles may call it."""

_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]*)", re.IGNORECASE)
_GONE: Final = 499
_HTTP_TIMEOUT: Final = 408


class StrictRequest(Request):
    """A request whose JSON body has been read and checked already."""

    def keep(self, body: bytes, members: dict[str, Member]) -> None:
        """Take what was read."""
        self._body = body
        self._json = {name: member.value for name, member in members.items()}
        self.state.members = members

    async def json(self) -> Any:
        """Return the body's value."""
        return self._json


class FacadeRoute(APIRoute):
    """A route of the facade. Its OpenAPI extras name the contract's method that it mirrors.

    `levels_around`: how much deeper than in a member of the body a JSON text that is passed on may stand.
    """

    levels_around: ClassVar[int] = 0

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what serves a request: every way out is an envelope."""
        inner = super().get_route_handler()
        mirrors = (self.openapi_extra or {}).get(MIRRORS)
        takes_body = self.body_field is not None
        needs_body = self.body_field is not None and self.body_field.field_info.is_required()
        parameters = {field.alias for field in _query_parameters(self.dependant)}
        where = f"{'/'.join(sorted(self.methods or ()))} {self.path_format}"

        async def serve(request: Request) -> Response:
            try:
                if mirrors is not None:
                    admission: Admission = request.app.state.admission
                    headers = request.headers
                    authorization = sole_authorization(headers.getlist("authorization"))
                    call = request.state.call = admission.admit(mirrors, authorization, headers.get("traceparent"))
                    if call.lists:
                        return _InTurn(admission, call, lambda: answered(request), where)
            except Exception as error:  # noqa: BLE001 - told to the caller, and logged if it is a fault
                return failure(error, where)
            return await answered(request)

        async def answered(request: Request) -> Response:
            try:
                _once_each(request, parameters)
                if takes_body:
                    strict = StrictRequest(request.scope, request.receive)
                    limit = request.app.state.max_body_bytes
                    await _read_into(strict, limit, self.levels_around, required=needs_body)
                    request = strict
                return await inner(request)
            except ClientDisconnect:
                return problem(_GONE, "the client has gone")
            except Exception as error:  # noqa: BLE001 - told to the caller, and logged if it is a fault
                return failure(error, where)

        return serve


class _InTurn(Response):
    """A list, made when its turn has come; the turn lasts until the client has taken it."""

    def __init__(
        self, admission: Admission, call: Call, answered: Callable[[], Awaitable[Response]], where: str
    ) -> None:
        self._admission = admission
        self._call = call
        self._answered = answered
        self._where = where
        super().__init__()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait, and answer."""
        try:
            async with self._admission.turn(self._call):
                await (await self._answered())(scope, receive, send)
        except RefusedError as error:
            await failure(error, self._where)(scope, receive, send)


def call_of(request: Request) -> Call:
    """Return who calls."""
    call: Call = request.state.call
    return call


def text_of(request: Request, name: str) -> str:
    """Return the text of a member of the body as it came."""
    members: dict[str, Member] = request.state.members
    return members[name].text


def _query_parameters(dependant: Dependant) -> Iterator[ModelField]:
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _query_parameters(each)


def _once_each(request: Request, parameters: Collection[str]) -> None:
    """Refuse a parameter that stands twice in the query: which of the two is meant is anybody's guess."""
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if count > 1 and name in parameters:
            raise invalid(name, "stands more than once in the query")


async def _read_into(request: StrictRequest, max_bytes: int, levels_around: int, *, required: bool) -> None:
    if _declared_length(request) > max_bytes:
        raise _too_large(max_bytes)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > max_bytes:
                    raise _too_large(max_bytes)
                chunks.append(chunk)
    except TimeoutError:
        close = {"Connection": "close"}
        raise ProblemError(_HTTP_TIMEOUT, f"the body did not arrive within {BODY_SECONDS:g} s", close) from None
    body = b"".join(chunks)
    if body or required:
        content_type = request.headers.get("content-type")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise ProblemError(400, "the body must be sent as it is, without Content-Encoding")
        request.keep(body, await checked(len(body), lambda: _parse(body, content_type, levels_around)))
    else:
        request.keep(body, {})


def _declared_length(request: Request) -> int:
    length = request.headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _parse(body: bytes, content_type: str | None, levels_around: int) -> dict[str, Member]:
    if not body:
        raise ProblemError(400, "the body is empty; it must be a JSON object")
    # A browser sends this type across sites only after asking, so no foreign page can file an order on loopback.
    if content_type is None or content_type.partition(";")[0].strip().lower() != "application/json":
        raise ProblemError(400, "the body must be JSON, sent with the header `Content-Type: application/json`")
    charset = _CHARSET.search(content_type)
    if charset is not None and charset[1].lower() != "utf-8":
        raise ProblemError(400, "the body must be UTF-8, whatever its Content-Type says")
    try:
        return parse_members(body.decode(), levels_around)
    except UnicodeDecodeError:
        raise ProblemError(400, "the body is not UTF-8") from None
    except JsonSyntaxError as error:
        raise ProblemError(400, f"the body {error}") from None
    except JsonTextError as error:
        raise RefusedError(Refusal(Reason.INVALID_FIELD, f"the body {error}")) from None


def _too_large(max_bytes: int) -> RefusedError:
    return RefusedError(Refusal(Reason.TOO_LARGE, f"the body is larger than {max_bytes:,} bytes"))
