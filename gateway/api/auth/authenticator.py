"""Who may call what, the same on every transport (docs/security.md#who-may-do-what)."""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from common.tokens import split_token
from gateway.domain.refusals import Reason, Refusal, RefusedError

_SCHEME: Final = "bearer "


class Role(StrEnum):
    """What a token may be used for."""

    UPSTREAM = "upstream"
    WORKER = "worker"
    OPERATOR = "operator"
    VIEWER = "viewer"


EVERY_ROLE: Final = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls: the name goes into the history, the roles decide what is allowed."""

    name: str
    roles: frozenset[Role]


OPEN: Final = Identity("anonymous", EVERY_ROLE)
"""Everybody, where no token is configured (loopback only)."""


class Authenticator:
    """Knows the tokens. Several for one role are valid at once, so that they can be rotated."""

    def __init__(self, tokens: Mapping[str, tuple[frozenset[Role], Sequence[str]]]) -> None:
        """`tokens`: identity name to its roles and its valid tokens; a token `name=secret` brings its own name."""
        self._known = [
            (secret.encode(), Identity(own_name or (name if number == 0 else f"{name}#{number + 1}"), roles))
            for name, (roles, configured) in tokens.items()
            for number, (own_name, secret) in enumerate(map(split_token, configured))
        ]

    @property
    def is_open(self) -> bool:
        """True if no token is configured."""
        return not self._known

    def identify(self, authorization: str | None) -> Identity:
        """Return who sent this `Authorization` value. Raises RefusedError UNAUTHENTICATED."""
        if self.is_open:
            return OPEN
        if authorization is None or not authorization[: len(_SCHEME)].lower() == _SCHEME:
            raise _unauthenticated("send the header `Authorization: Bearer <token>`")
        given = authorization[len(_SCHEME) :].strip().encode("utf-8", "surrogatepass")
        found: Identity | None = None
        # Every token is compared, so the time taken tells nothing of which one came close.
        for secret, identity in self._known:
            if hmac.compare_digest(secret, given) and found is None:
                found = identity
        if found is None:
            raise _unauthenticated("the token is not valid")
        return found

    def owner(self, made_with: Callable[[bytes], bool]) -> Identity | None:
        """Return whose token something was made with; None where no token is that, or not any more.

        Every token is tried, as in `identify`.
        """
        found = [identity for secret, identity in self._known if made_with(secret)]
        return found[0] if found else None


def sole_authorization(values: Sequence[str]) -> str | None:
    """Return the one `Authorization` value of a call, or None. Raises RefusedError UNAUTHENTICATED for several.

    Two programs on the way may each read another one of them, so none of them is believed.
    """
    if len(values) > 1:
        raise _unauthenticated("send the header `Authorization` once; this call has several")
    return values[0] if values else None


def require(identity: Identity, roles: frozenset[Role], operation: str) -> None:
    """Raise RefusedError PERMISSION_DENIED unless `identity` has one of `roles`."""
    if identity.roles.isdisjoint(roles):
        needed = " or ".join(sorted(roles))
        why = f"{operation} needs a token of the role {needed}, this is {identity.name}"
        raise RefusedError(Refusal(Reason.PERMISSION_DENIED, why))


def _unauthenticated(why: str) -> RefusedError:
    return RefusedError(Refusal(Reason.UNAUTHENTICATED, why))
