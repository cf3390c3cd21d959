"""What a person sees of a page, by another parser than the worker's (html5lib) and rules of its own: the judge of it."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import html5lib

LABEL = "お支払い金額"
_NEVER_SHOWN = {"head", "script", "style", "template", "noscript", "noembed", "noframes", "title"}
_XHTML = "{http://www.w3.org/1999/xhtml}"


def parse(html: bytes) -> Element:
    """The page's tree; names of HTML elements without their namespace. Raises UnicodeDecodeError."""
    return html5lib.parse(html.decode(), treebuilder="etree", namespaceHTMLElements=False)


def shown(root: Element) -> Iterator[Element]:
    """The elements that are not certainly hidden."""
    pending = [root]
    while pending:
        element = pending.pop()
        if not isinstance(element.tag, str) or element.tag.removeprefix(_XHTML) in _NEVER_SHOWN:
            continue
        style = re.sub(r"\s", "", element.get("style", "").lower())
        if style.strip(";") in ("display:none", "display:none!important") or ("hidden" in element.attrib and not style):
            continue
        yield element
        pending += reversed(list(element))


def visible_text(root: Element) -> str:
    """All text that is not certainly hidden, in the order of the page."""
    pieces: list[str] = []
    inside = {id(element) for element in shown(root)}

    def walk(element: Element) -> None:
        pending: list[Element | str] = [element]
        while pending:
            part = pending.pop()
            if isinstance(part, str):
                pieces.append(part)
                continue
            if id(part) in inside:
                pieces.append(part.text or "")
                for child in reversed(list(part)):
                    pending += [child.tail or "", child]

    walk(root)
    return "".join(pieces)


def contradiction(html: bytes, amount: int) -> str | None:
    """Why a person would not agree that this is the amount to pay; None where they would."""
    root = parse(html)
    text = visible_text(root)
    if text.count(LABEL) != 1:
        return f"the page speaks {text.count(LABEL)} times of an amount to pay"
    marked = [element for element in shown(root) if _is_marked(element)]
    if len(marked) != 1:
        return f"{len(marked)} amounts are marked as the one to pay"
    said = re.match(r"[\s\S]*?" + LABEL + r"\s*([0-9,]+)円", text)
    if said is None or int(said[1].replace(",", "")) != amount:
        return f"after the label stands {text.partition(LABEL)[2][:40]!r}"
    return None


def _is_marked(element: Element) -> bool:
    return element.get("id") == "payable" or "payable" in element.get("class", "").split()


def line_count(html: bytes) -> int:
    """How many lines of a table the page shows."""
    return sum("line" in element.get("class", "").split() for element in shown(parse(html)))
