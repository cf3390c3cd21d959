"""What the server must be like before it is trusted with an acknowledgement; each finding is one line."""

import secrets
from dataclasses import dataclass, field
from typing import Final

import psycopg

from gateway.domain.models import Standby
from gateway.store.port import DatabaseUnusableError
from gateway.store.postgres.connection import Address

OLDEST_VERSION: Final = 140_000

HEARD_WITHIN_SECONDS: Final = 5.0
"""How long a notification may take from one session to another; usually a millisecond."""

_WHAT_IT_BREAKS: Final = {
    "fsync": "what was acknowledged would be lost when the machine stops",
    "full_page_writes": "a crash in the middle of a page could damage the database",
}


@dataclass(slots=True)
class Findings:
    """What is wrong with a server: refusals, and what may be meant."""

    refusals: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def examine(connection: psycopg.Connection, standby: Standby = Standby.NONE) -> Findings:
    """Look at the server's version and settings. Raises psycopg.Error."""
    findings = Findings()
    version = connection.info.server_version
    if version < OLDEST_VERSION:
        findings.refusals.append(f"it is PostgreSQL {version // 10_000}; 14 or newer is needed")
    if _ask(connection, "SELECT pg_is_in_recovery()"):
        findings.refusals.append("it is a standby, which takes no writes; name the primary")
    for setting, breaks in _WHAT_IT_BREAKS.items():
        if _ask(connection, "SELECT current_setting(%s)", setting) == "off":
            findings.refusals.append(f"its setting {setting} is off: {breaks}")
    encoding = _ask(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        findings.refusals.append(f"its encoding is {encoding}; create the database with ENCODING 'UTF8'")
    _examine_commits(connection, standby, findings)
    return findings


def require_sound(connection: psycopg.Connection, standby: Standby = Standby.NONE) -> list[str]:
    """Return what is worth a warning. Raises DatabaseUnusableError for what weakens a promise, psycopg.Error."""
    findings = examine(connection, standby)
    if findings.refusals:
        raise DatabaseUnusableError("; ".join(findings.refusals))
    return findings.warnings


def require_notifications(address: Address, connection: psycopg.Connection) -> None:
    """Raise DatabaseUnusableError unless one session hears what another one tells; psycopg.Error.

    Behind a pool that lends a server's session for one transaction, prepared statements and settings get lost as well.
    """
    channel = f"order_gateway_{secrets.token_hex(8)}"
    with address.connect("listener") as listening:
        listening.execute(f"LISTEN {channel}")
        connection.execute(f"NOTIFY {channel}")
        if not any(True for _ in listening.notifies(timeout=HEARD_WITHIN_SECONDS, stop_after=1)):
            raise DatabaseUnusableError(
                "a session does not hear its notifications: a pool in transaction or statement mode is in between; "
                "connect to the server itself, or through a pool in session mode"
            )


def _examine_commits(connection: psycopg.Connection, standby: Standby, findings: Findings) -> None:
    """A session's own setting is `on`, unless something between us and the server has replaced it."""
    setting = _ask(connection, "SELECT current_setting('synchronous_commit')")
    standbys = _ask(connection, "SELECT current_setting('synchronous_standby_names')")
    if setting == "off":
        findings.refusals.append(
            "synchronous_commit is off in our own sessions: a commit would be acknowledged before it is on disk"
        )
    elif setting == "local" and standbys:
        findings.warnings.append(
            "synchronous_commit is local: a standby that is promoted may lack what was acknowledged"
        )
    if standby is Standby.SYNCHRONOUS and not standbys:
        findings.warnings.append(
            "its synchronous_standby_names is empty: until it names a standby, nothing is leased and no permit granted "
            "(RAKUTEN_DATABASE_STANDBY=synchronous)"
        )


def _ask(connection: psycopg.Connection, sql: str, *parameters: str) -> object:
    row = connection.execute(sql.encode(), parameters or None).fetchone()
    return None if row is None else row[0]
