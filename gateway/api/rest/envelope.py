"""The envelope of every answer (docs/rest.md#the-json-contract), and how a refusal or a fault is told in it."""

import logging
import math
from collections.abc import Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from gateway.api.errors import ERRORS, refusal_of
from gateway.domain.json_writing import dump_document
from gateway.domain.refusals import Reason, Refusal

_log = logging.getLogger(__name__)

_OK: Final = 200
_BUSY_SECONDS: Final = 1
_MAX_PROBLEMS_TOLD: Final = 10


class ProblemError(Exception):
    """A request that HTTP itself refuses; the code is the HTTP status (400, 404, 405, 408, 413, 501)."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers


def success(data: Any) -> Response:
    """Answer with `data`: JSON values in which JsonText may stand anywhere."""
    return _response(_OK, envelope(success=True, message="ok", data=data, code=0))


def failure(error: Exception, where: str) -> Response:
    """Answer with what an exception means. A fault is logged with `where` it happened, and its text stays there."""
    if isinstance(error, ProblemError):
        return problem(error.status, error.message, error.headers)
    if isinstance(error, RequestValidationError):
        return problem(ERRORS[Reason.INVALID_FIELD].http, _told(error))
    if isinstance(error, HTTPException):
        return problem(error.status_code, error.detail, error.headers)
    refusal = refusal_of(error)
    if refusal.reason is Reason.INTERNAL:
        _log.error("%s failed", where, exc_info=error)
    return refused(refusal)


def refused(refusal: Refusal) -> Response:
    """Answer with a refusal, by the one error table."""
    answer = ERRORS[refusal.reason]
    headers = {}
    if refusal.reason is Reason.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(math.ceil(refusal.retry_after.total_seconds()))
    elif answer.status == "UNAVAILABLE":
        headers["Retry-After"] = str(_BUSY_SECONDS)
    body = envelope(success=False, message=refusal.message, data=None, code=answer.code)
    return _response(answer.http, body, headers)


def problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with a generic error, whose code is the HTTP status."""
    return _response(status, envelope(success=False, message=message, data=None, code=status), headers)


def envelope(*, success: bool, message: str, data: Any, code: int) -> bytes:
    """Write an envelope."""
    return dump_document({"success": success, "msg": message, "data": data, "code": code}).encode("utf-8", "replace")


def _response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body, status, {"Cache-Control": "no-store", **(headers or {})}, "application/json")


def _told(error: RequestValidationError) -> str:
    """Name each wrong value and what is wrong with it, without the value itself."""
    problems = error.errors()
    told = ["{}: {}".format(*problem_of(problem, 1)) for problem in problems[:_MAX_PROBLEMS_TOLD]]
    if len(problems) > _MAX_PROBLEMS_TOLD:
        told.append(f"and {len(problems) - _MAX_PROBLEMS_TOLD} more")
    return "; ".join(told)


def problem_of(problem: Any, begin: int) -> tuple[str, str]:
    """Return the field that pydantic found wrong, its path from part `begin` on, and what is wrong with it."""
    path = ".".join(str(part) for part in problem["loc"][begin:]) or "body"
    return path, problem["msg"].removeprefix("Value error, ")
