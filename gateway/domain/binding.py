"""Whom a lease belongs to beside the worker's name, which anybody can say: the named token that took it.

The rule: docs/security.md#who-may-do-what. A token without a name is called after its place in a list, which rotation
changes, so nothing is bound to it.
"""

from common.tokens import RESERVED


def binding_of(identity: str) -> str | None:
    """Return what a lease of this identity is bound to: a named token, or None."""
    return None if identity.partition("#")[0] in RESERVED else identity


def may_hold(bound_to: str | None, identity: str) -> bool:
    """Tell whether an identity may act on a lease that is bound so."""
    return bound_to in (None, identity)
