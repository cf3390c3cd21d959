"""What the server must be like before it is trusted with an acknowledgement; each finding is one line."""

from dataclasses import dataclass, field
from typing import Final

import psycopg

from gateway.store.port import DatabaseUnusableError

OLDEST_VERSION: Final = 140_000

_WHAT_IT_BREAKS: Final = {
    "fsync": "what was acknowledged would be lost when the machine stops",
    "full_page_writes": "a crash in the middle of a page could damage the database",
}


@dataclass(slots=True)
class Findings:
    """What is wrong with a server: refusals, and what may be meant."""

    refusals: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def examine(connection: psycopg.Connection) -> Findings:
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
    _examine_commits(connection, findings)
    return findings


def require_sound(connection: psycopg.Connection) -> list[str]:
    """Return what is worth a warning. Raises DatabaseUnusableError for what weakens a promise, psycopg.Error."""
    findings = examine(connection)
    if findings.refusals:
        raise DatabaseUnusableError("; ".join(findings.refusals))
    return findings.warnings


def _examine_commits(connection: psycopg.Connection, findings: Findings) -> None:
    """A session's own option is `on`, unless the URL or something between us and the server has replaced it."""
    setting = _ask(connection, "SELECT current_setting('synchronous_commit')")
    if setting == "off":
        findings.refusals.append(
            "synchronous_commit is off in our own sessions: a commit would be acknowledged before it is on disk"
        )
    elif setting == "local" and _ask(connection, "SELECT current_setting('synchronous_standby_names')"):
        findings.warnings.append(
            "synchronous_commit is local: a standby that is promoted may lack what was acknowledged"
        )
    if _ask(connection, "SELECT current_setting('idle_in_transaction_session_timeout')") == "0":
        findings.refusals.append(
            "our session's start-up options do not arrive: a pool in transaction mode is in between; connect to the "
            "server itself, or through a pool in session mode"
        )


def _ask(connection: psycopg.Connection, sql: str, *parameters: str) -> object:
    row = connection.execute(sql.encode(), parameters or None).fetchone()
    return None if row is None else row[0]
