"""What a page shows to a person, as far as that can be told without drawing it.

Nothing here takes the first of several. What is hidden beyond doubt does not count; what may or may not be shown (an
inline style, a tag or an attribute that is not known to be harmless) makes the page unreadable, and so does a second
element where one is asked for. Style sheets are not looked at: what only they hide counts as shown.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NoReturn
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from worker.sites.port import Page, PageChangedError

MAX_NESTING = 100
"""Levels of elements around anything that is read."""

MAX_LINK = 2_000

_NOSCRIPT = re.compile(r"(</?)noscript", re.IGNORECASE | re.ASCII)
_NOEMBED = re.compile(r"</?noembed", re.IGNORECASE | re.ASCII)
_HIDDEN_TAGS = frozenset({"head", "title", "script", "style", "template", "noembed", "noframes"})
_PLAIN_TAG = re.compile(
    "html|body|header|main|footer|nav|section|article|aside|div|p|span|h[1-6]|ul|ol|li|d[ldt]|a|b|strong|em|i|small|time"
    "|table|caption|thead|tbody|tfoot|t[rdh]|form|fieldset|legend|label|input|button|select|option"
)
_SHADOW_ATTRIBUTES = frozenset({"shadowrootmode", "shadowroot"})
_DOUBTFUL_ATTRIBUTES = frozenset({"popover", "aria-hidden"})
_LENGTHS = r"(?:0|auto|[0-9]{1,4}px)(?:\s+(?:0|auto|[0-9]{1,4}px)){0,3}"
_HARMLESS = re.compile(rf"(?:margin(?:-top|-bottom)?|max-width)\s*:\s*{_LENGTHS}")
_DISPLAY_NONE = re.compile(r"display\s*:\s*none(?:\s*!\s*important)?")
_LINK = re.compile(r"[!-~]+")


class Shown(Enum):
    """Whether an element is drawn. UNCLEAR: not to be guessed."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "unclear"


class Document:
    """A parsed page. Every method raises PageChangedError where the page does not say clearly what is asked."""

    def __init__(self, page: Page) -> None:
        self.page = page
        try:
            text = page.html.decode("utf-8")
        except UnicodeDecodeError:
            self.changed("text in UTF-8")
        # The parser reads as a browser without scripts does: what is in <noscript> are elements, which may leave others
        # open or end a comment. A browser with scripts takes it for mere text, as it takes what is in <noembed>.
        if _NOEMBED.search(text):
            self.changed("markup that all browsers read alike: it has <noembed>")
        self._tree = LexborHTMLParser(_NOSCRIPT.sub(r"\1noembed", text))
        if any((node.attributes.get("http-equiv") or "").strip().lower() == "refresh" for node in self.all("meta")):
            self.changed("content of its own: it sends its reader on (meta refresh)")
        if any(node.attributes.keys() & _SHADOW_ATTRIBUTES for node in self.all("template")):
            self.changed("markup that all browsers draw alike: it has a shadow root")

    def changed(self, what: str, *, error_code: int | None = None) -> NoReturn:
        """Raise PageChangedError: the page lacks `what`."""
        message = f"the page {self.page.url} (HTTP {self.page.http_status}) lacks {what}"
        raise PageChangedError(message, error_code=error_code, page=self.page)

    def every(self, selector: str, within: LexborNode | None = None) -> list[LexborNode]:
        """All shown elements, each once, in the order of the page."""
        found = []
        for node in {node.mem_id: node for node in (within or self._tree).css(selector)}.values():
            shown = self._shown(node)
            if shown is Shown.UNCLEAR:
                self.changed(f"a {selector} of which it is clear whether it is shown")
            if shown is Shown.YES:
                found.append(node)
        return found

    def at_most_one(self, selector: str, within: LexborNode | None = None) -> LexborNode | None:
        """Return the shown element, None where there is none."""
        found = self.every(selector, within)
        if len(found) > 1:
            self.changed(f"a single {selector}: it shows {len(found)}")
        return found[0] if found else None

    def one(self, selector: str, within: LexborNode | None = None) -> LexborNode:
        """Return the shown element."""
        return self.at_most_one(selector, within) or self.changed(selector)

    def scripts(self) -> list[LexborNode]:
        """Return the scripts that a browser would run, in the order of the page."""
        return [node for node in self._tree.css("script") if not node.attributes.keys() & {"src", "type"}]

    def all(self, selector: str) -> list[LexborNode]:
        """All such elements, shown or not."""
        return list(self._tree.css(selector))

    def has(self, selector: str) -> bool:
        """Return True if there is such an element, shown or not."""
        return self._tree.css_first(selector) is not None

    def text(self, node: LexborNode) -> str:
        """Return an element's text, without white space at its ends; it must hold nothing but text."""
        child = node.first_child
        while child is not None:
            if child.is_element_node:
                self.changed(f"a <{node.tag}> of plain text")
            child = child.next
        return node.text(deep=False).strip()

    def after(self, node: LexborNode) -> LexborNode | None:
        """Return the element that follows, None where something else stands before it, or beside both."""
        parent = node.parent
        beside = [] if parent is None else [child for child in parent.iter(include_text=True) if child.is_text_node]
        if any(text.text(deep=False).strip() for text in beside):
            return None
        following = node.next
        while following is not None and not following.is_element_node:
            following = following.next
        return following

    def texts(self) -> Iterator[str]:
        """All text that is not hidden beyond doubt, piece by piece, in the order of the page."""
        pending = [(self._tree.root, 0)]
        while pending:
            node, level = pending.pop()
            if node is None or node.is_comment_node:
                continue
            if node.is_text_node:
                yield node.text(deep=False)
            elif level > MAX_NESTING:
                self.changed(f"a nesting of at most {MAX_NESTING} levels")
            elif _alone(node) is not Shown.NO:
                pending += [(child, level + 1) for child in reversed(list(node.iter(include_text=True)))]

    def link(self, href: str | None) -> str:
        """Where a link or a form leads, as an absolute URL."""
        if href is None or not is_link(href) or self.has("base"):
            self.changed("a link that can be read")
        try:
            return urljoin(self.page.url, href)
        except ValueError:
            self.changed("a link that can be read")

    def _around(self, node: LexborNode) -> Iterator[LexborNode]:
        """Return the elements around a node, from the inside outwards."""
        parent = node.parent
        for _ in range(MAX_NESTING):
            if parent is None or not parent.is_element_node:
                return
            yield parent
            parent = parent.parent
        self.changed(f"a nesting of at most {MAX_NESTING} levels")

    def _shown(self, node: LexborNode) -> Shown:
        kinds = {_alone(node), *map(_alone, self._around(node))}
        if Shown.NO in kinds:
            return Shown.NO
        return Shown.UNCLEAR if Shown.UNCLEAR in kinds else Shown.YES


def is_link(text: str) -> bool:
    """Return True if every reader takes this text for the same link: visible ASCII, no `\\`, no `///`, not overlong."""
    return len(text) <= MAX_LINK and bool(_LINK.fullmatch(text)) and not ("\\" in text or "///" in text)


def _alone(node: LexborNode) -> Shown:
    """Return what an element says by itself of whether it is shown."""
    attributes = node.attributes
    if node.tag in _HIDDEN_TAGS:
        return Shown.NO
    styled = _styled(attributes.get("style") or "")
    if styled is Shown.UNCLEAR or not _PLAIN_TAG.fullmatch(node.tag or "") or attributes.keys() & _DOUBTFUL_ATTRIBUTES:
        return Shown.UNCLEAR
    return Shown.NO if styled is Shown.NO or "hidden" in attributes else Shown.YES


def _styled(style: str) -> Shown:
    declarations = [part.strip() for part in style.lower().split(";")]
    further = [part for part in declarations if part and not _HARMLESS.fullmatch(part)]
    if not further:
        return Shown.YES
    return Shown.NO if all(_DISPLAY_NONE.fullmatch(part) for part in further) else Shown.UNCLEAR
