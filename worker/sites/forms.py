"""Reading a form as a browser would send it: where to, how, and with which fields. What is not known is not sent.

A browser associates a control with a form also where it does not stand within it: by its `form` attribute, or since the
form was left open where it was opened. So a page on which any control stands outside of every form is not read.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from selectolax.lexbor import LexborNode

from worker.sites.addresses import unescaped
from worker.sites.shown import Document

MAX_VALUE = 4_000

_FORM_ATTRIBUTES = frozenset({"id", "class", "method", "action", "style"})
_HIDDEN_ATTRIBUTES = frozenset({"type", "name", "value"})
_CONTROLS = ("input", "button", "select", "textarea", "object", "output")
_BUTTON_ATTRIBUTES = frozenset({"type", "class"})


@dataclass(frozen=True, slots=True)
class Form:
    """`action` is the path on the page's own site; `fields` are the hidden ones."""

    action: str
    fields: Mapping[str, str]


def read_form(
    document: Document,
    form: LexborNode,
    *,
    action: str,
    hidden: Collection[str],
    controls: Collection[str] = frozenset(),
) -> Form:
    """Return a form that is sent with POST to the page's own site.

    `action` is the path that this form leads to, and no other, without a query: what another form would do is not
    done by this one. `hidden` are the names of its hidden fields, each of which must be there once; `controls` those
    of the fields that the caller fills in. Raises PageChangedError where a browser would send anything else, or to
    anywhere else.
    """
    attributes = form.attributes
    if attributes.keys() - _FORM_ATTRIBUTES or (attributes.get("method") or "").lower() != "post":
        document.changed("a form that is sent with POST, as form fields")
    target = _action(document, attributes.get("action"))
    if unescaped(target) != action:
        document.changed(f"a form that leads to {action}: it leads to {target}")
    return Form(action, _fields(document, form, hidden, controls))


def _action(document: Document, action: str | None) -> str:
    target, site = document.link(action), urlsplit(document.page.url)
    origin = f"{site.scheme}://{site.netloc}"
    if not target.startswith(origin + "/"):
        document.changed(f"a form that leads to its own site: it leads to another site, {target}")
    return target.removeprefix(origin).partition("#")[0]


def _fields(document: Document, form: LexborNode, hidden: Collection[str], controls: Collection[str]) -> dict[str, str]:
    outside = {node.mem_id for node in document.all(", ".join(_CONTROLS))}
    outside -= {node.mem_id for node in document.all(", ".join(f"form {tag}" for tag in _CONTROLS))}
    if outside or document.has("[form]"):
        document.changed("a form whose fields all lie within it")
    if document.has("fieldset[disabled]"):
        document.changed("a form whose fields are all sent: a fieldset is disabled")
    fields: dict[str, str] = {}
    for node in form.css(", ".join(_CONTROLS)):
        attributes = node.attributes
        name = attributes.get("name") or ""
        kind = (attributes.get("type") or "").lower()
        if node.tag == "button" and kind == "submit" and not attributes.keys() - _BUTTON_ATTRIBUTES:
            continue
        if node.tag == "input" and kind == "hidden":
            value = attributes.get("value") or ""
            if name in fields or attributes.keys() - _HIDDEN_ATTRIBUTES or len(value) > MAX_VALUE:
                document.changed(f"a plain, single field {name}")
            fields[name] = value
        elif node.tag not in ("input", "select") or name not in controls:
            document.changed(f"a form of known fields: it has <{node.tag} name={name!r}>")
    if fields.keys() != set(hidden) or "" in fields.values():
        document.changed(f"a form with the fields {', '.join(sorted(hidden)) or 'that it had'}")
    return fields
