"""A page of evidence made inert: what it looked like is left, what would act or reach out is taken out.

The browser gets it in a sandbox besides, under a policy that allows nothing (`guard`): each of both is enough to keep
its scripts from running. What a policy does not cover is taken out here: links to be followed, and hints such as
preconnect, by which a page reaches other hosts without fetching anything.
"""

from typing import Final

from selectolax.lexbor import LexborHTMLParser

from worker.evidence.decoding import decode_html
from worker.sites.port import Page, PageChangedError

_TAKEN_OUT: Final = (
    "script", "noscript", "link", "meta", "base", "iframe", "frame", "frameset", "object", "embed", "applet", "portal",
    "fencedframe", "template", "audio", "video", "source", "track", "form > input[type=image]", "animate", "set",
)  # fmt: skip
_ATTRIBUTES: Final = frozenset(
    {
        "href", "xlink:href", "src", "srcset", "imagesrcset", "action", "formaction", "ping", "target", "background",
        "poster", "data", "manifest", "archive", "codebase", "classid", "longdesc", "usemap", "profile", "cite",
        "download", "autofocus", "srcdoc", "http-equiv",
    }
)  # fmt: skip
"""Attributes that name another place, or act by themselves. Those that begin with `on` are handlers of events."""

_INLINE_IMAGE: Final = "data:image/"

_READINGS: Final = 3


def inert_page(page: Page) -> str:
    """Return a page made inert. A reading function: a parser may make 34 MB of 29 KB (`PageReader`)."""
    return inert(decode_html(page.html))


def inert(html: str) -> str:
    """Return a page without what would run, fetch, send or lead away.

    What was text to the parser may be a link in the page that is written from it. So that is read again, until nothing
    changes. Raises PageChangedError where something still does at the third reading.
    """
    for _ in range(_READINGS):
        shown = _taken_out(html)
        if shown == html:
            return shown
        html = shown
    raise PageChangedError("the page turns into another one each time that it is read")


def _taken_out(html: str) -> str:
    page = LexborHTMLParser(html)
    for node in page.css(", ".join(_TAKEN_OUT)):
        node.decompose()
    for node in page.css("*"):
        for name, value in list(node.attributes.items()):
            if _is_left(node.tag, name.lower(), value or ""):
                continue
            del node.attrs[name]
    return page.html or ""


def _is_left(tag: str | None, name: str, value: str) -> bool:
    if tag == "img" and name == "src":
        return value.strip().lower().startswith(_INLINE_IMAGE)
    return name not in _ATTRIBUTES and not name.startswith("on")
