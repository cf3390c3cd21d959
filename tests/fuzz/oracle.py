"""What a person sees of a page, by another parser than the worker's (justhtml) and rules of its own."""

import re
from collections.abc import Iterator

from justhtml import JustHTML
from justhtml.dom import Element, Node

LABEL = "お支払い金額"
_NEVER_SHOWN = {"head", "script", "style", "template", "noscript", "noembed", "noframes", "title"}


def shown(html: bytes) -> Iterator[Node]:
    """What is not certainly hidden, in the order of the page, as a browser with scripts reads it."""
    pending: list[Node] = [JustHTML(html.decode(), sanitize=False, scripting_enabled=True).root]
    while pending:
        node = pending.pop()
        if isinstance(node, Element) and _is_hidden(node):
            continue
        yield node
        pending += reversed(node.children or [])


def _is_hidden(element: Element) -> bool:
    attributes = element.attrs or {}
    style = re.sub(r"\s", "", (attributes.get("style") or "").lower()).strip(";")
    hides = style in ("display:none", "display:none!important")
    return element.name in _NEVER_SHOWN or hides or ("hidden" in attributes and not style)


def contradiction(html: bytes, amount: int) -> str | None:
    """Why a person would not agree that this is the amount to pay; None where they would."""
    nodes = list(shown(html))
    text = "".join(node.data or "" for node in nodes if node.name == "#text")
    if text.count(LABEL) != 1:
        return f"the page speaks {text.count(LABEL)} times of an amount to pay"
    marked = [node for node in nodes if isinstance(node, Element) and _is_marked(node)]
    if len(marked) != 1:
        return f"{len(marked)} amounts are marked as the one to pay"
    after = text.partition(LABEL)[2]
    said = re.match(r"\s*([0-9,]+)円", after)
    if said is None or int(said[1].replace(",", "")) != amount:
        return f"after the label stands {after[:40]!r}"
    return None


def _is_marked(element: Element) -> bool:
    attributes = element.attrs or {}
    return attributes.get("id") == "payable" or "payable" in (attributes.get("class") or "").split()


def line_count(html: bytes) -> int:
    """How many lines of a table the page shows."""
    elements = [node for node in shown(html) if isinstance(node, Element)]
    return sum("line" in ((element.attrs or {}).get("class") or "").split() for element in elements)
