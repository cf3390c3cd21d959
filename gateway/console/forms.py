"""Forms as browsers send them: urlencoded, bounded, read once."""

from typing import Final
from urllib.parse import parse_qs

from starlette.requests import Request

from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid

MAX_FORM_BYTES: Final = 64 * 1024
MAX_FORM_FIELDS: Final = 300


class Form:
    """The fields of a form; text fields have `\\n` at the ends of their lines."""

    def __init__(self, text: str) -> None:
        """Raises RefusedError INVALID_FIELD where there are too many fields."""
        try:
            self._fields = parse_qs(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
        except ValueError:
            raise invalid("form", f"has more than {MAX_FORM_FIELDS} fields") from None

    def one(self, name: str) -> str:
        """Return a field's value without blanks around it; empty where there is none."""
        return self._fields.get(name, [""])[0].replace("\r\n", "\n").strip()

    def every(self, name: str) -> tuple[str, ...]:
        """Return all values of a field."""
        return tuple(self._fields.get(name, ()))


async def form_of(request: Request) -> Form:
    """Read the form of a request. Raises RefusedError TOO_LARGE, INVALID_FIELD."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise RefusedError(Refusal(Reason.TOO_LARGE, f"a form is at most {MAX_FORM_BYTES:,} bytes"))
    return Form(body.decode("utf-8", "replace"))
