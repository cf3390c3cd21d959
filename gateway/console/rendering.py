"""Pages from templates: everything that is filled in is text, whatever it holds."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gateway.console.messages import LANGUAGES, catalogue
from gateway.domain.findings import Finding
from gateway.domain.instant import parse_utc

STATIC: Final[Mapping[str, str]] = {
    "console.css": "text/css",
    "console.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
"""The files beside the pages, and what each is."""

_UNSEEN: Final = re.compile(
    "([\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u08e2\\u115f\\u1160\\u180e\\u200b-\\u200f"
    "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\ue000-\\uf8ff\\U0001d173-\\U0001d17a"
    "\\U000e0000-\\U000e0fff\\U000f0000-\\U0010ffff])"
)
"""Characters that have no look of their own, or change how others look."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_INDENT: Final = "  "
_NOTHING: Final = "\u2013"

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def static_file(name: str) -> bytes:
    """Return a file of STATIC."""
    return files("gateway.console").joinpath("static", name).read_bytes()


@cache
def static_path(name: str) -> str:
    """Return where a file of STATIC is served: under a name that changes with what it holds."""
    return f"/console/static/{hashlib.sha256(static_file(name)).hexdigest()[:12]}/{name}"


@cache
def words(language: str) -> Callable[..., str]:
    """Return what looks a message up and fills it in."""
    texts = catalogue(language)

    def say(key: str, **values: Any) -> str:
        return texts[key].format_map({name: str(value) for name, value in values.items()})

    return say


@cache
def environment(language: str) -> Environment:
    """Return the templates of a language."""
    made = Environment(
        loader=PackageLoader("gateway.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols"],
    )
    say = words(language)

    def span(seconds: float) -> str:
        return _span(say, seconds)

    made.globals |= {"t": say, "language": language, "languages": LANGUAGES, "static_path": static_path}
    made.filters |= {
        "time": time_element,
        "yen": yen,
        "visible": visible,
        "pretty": pretty,
        "json_of": json.loads,
        "span": span,
        "seconds": timedelta.total_seconds,
        "sentence": lambda finding: sentence(say, finding),
    }
    return made


def yen(amount: int | None) -> str:
    """Write an amount."""
    return _NOTHING if amount is None else f"¥{amount:,}"


def time_element(utc: str | datetime | None) -> Markup:
    """Write a time in UTC, which the page's script turns into the viewer's zone and keeps to be shown on hover."""
    if utc is None or utc == "":
        return escape(_NOTHING)
    at = (parse_utc(utc) if isinstance(utc, str) else utc).astimezone(UTC)
    shown = f"{at:%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(f"{at:%Y-%m-%dT%H:%M:%SZ}", shown, shown)


def visible(text: object) -> Markup:
    """Write a text from outside so that each of its characters can be seen: what controls or turns it has its number.

    Line ends stay.
    """
    return Markup(_UNSEEN.sub(_number, escape(text)))  # noqa: S704 - escaped, but for the numbers


def _number(unseen: re.Match[str]) -> str:
    return f'<span class="code">U+{ord(unseen[0]):04X}</span>'


def pretty(json_text: str) -> Markup:
    """Write a JSON text with its parts on lines of their own; numbers stay as they are, whatever their size."""
    return visible("".join(_indented(json_text)))


def _indented(json_text: str) -> Iterator[str]:
    depth, before = 0, ""
    for part in _TOKEN.findall(json_text):
        if part in "}]":
            depth -= 1
        if (part in "}]" and before not in "{[") or (before in ("{", "[", ",") and part not in "}]"):
            yield "\n" + _INDENT * depth
        yield json.dumps(json.loads(part), ensure_ascii=False) if part.startswith('"') else part
        if part == ":":
            yield " "
        if part in "{[":
            depth += 1
        before = part


def sentence(say: Callable[..., str], finding: Finding) -> Markup:
    """Say a finding, its times as elements of their own."""
    values = {name: time_element(value) if name == "at" else visible(value) for name, value in finding.values.items()}
    return escape(say(f"finding.{finding.kind}", **{name: f"{{{name}}}" for name in values})).format_map(values)


def _span(say: Callable[..., str], seconds: float) -> str:
    """Say how long something lasts, by its two largest units."""
    whole = max(0, math.ceil(seconds))
    if whole < _MINUTE:
        return say("span.seconds", s=whole)
    if whole < _HOUR:
        return say("span.minutes", m=whole // _MINUTE, s=whole % _MINUTE)
    if whole < _DAY:
        return say("span.hours", h=whole // _HOUR, m=whole % _HOUR // _MINUTE)
    return say("span.days", d=whole // _DAY, h=whole % _DAY // _HOUR)
