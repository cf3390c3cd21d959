"""PEM files that settings name, tried before anything is served or sent with them; the message says which and why.

A certificate with its key is tried by a handshake in memory, with a peer that trusts this very certificate: so what the
other side would refuse (expired, for another purpose, a key of another) is known before it does.
"""

import ssl
import time
from pathlib import Path
from typing import Any, Final

_MOST_FLIGHTS: Final = 8
"""A handshake is over after two or three."""


class PemFileError(Exception):
    """A file cannot be used, or two do not fit together; the message says which and why."""


def read_pem(path: Path) -> bytes:
    """Return what stands in a file. Raises PemFileError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise PemFileError(f"{path} cannot be read ({error.strerror})") from error


def check_authorities(path: Path, data: bytes) -> None:
    """Raise PemFileError unless one of the authorities in a file is valid today: a list of them ages in parts."""
    outdated = [_out_of_date(found) for found in _trusting(path, data).get_ca_certs()]
    if outdated and all(outdated):
        raise PemFileError(f"{path}: {outdated[0]}")


def check_pair(certificate: Path, key: Path, chain: bytes, *, of_server: bool) -> None:
    """Raise PemFileError unless a certificate (`chain` is what its file holds) and its key serve to be shown today."""
    outdated = next(filter(None, map(_out_of_date, _trusting(certificate, chain).get_ca_certs())), "")
    verifier = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if of_server else ssl.PROTOCOL_TLS_SERVER)
    verifier.check_hostname = False
    verifier.verify_mode = ssl.CERT_REQUIRED
    verifier.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    verifier.load_verify_locations(cadata=chain.decode())
    prover = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if of_server else ssl.PROTOCOL_TLS_CLIENT)
    prover.check_hostname = False
    prover.verify_mode = ssl.CERT_NONE
    load_pair(prover, certificate, key)
    if not of_server:
        load_pair(verifier, certificate, key)  # a server has to show something, too
    refused = _refused(*((verifier, prover) if of_server else (prover, verifier)))
    if refused or outdated:
        raise PemFileError(f"{certificate}: {refused or outdated}")


def load_pair(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Load a certificate with its key into a context. Raises PemFileError."""
    try:
        context.load_cert_chain(certificate, key, password="")
    except OSError as error:  # an SSLError is one
        reason = str(getattr(error, "reason", None) or error)
        why = "it is another's key" if "MISMATCH" in reason else f"no private key in PEM without a password ({reason})"
        raise PemFileError(f"{key} does not fit {certificate}: {why}") from error


def _trusting(path: Path, data: bytes) -> ssl.SSLContext:
    """Return a context that trusts the certificates of a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=data.decode("ascii"))
    except (ValueError, ssl.SSLError) as error:  # a UnicodeDecodeError is a ValueError
        why = "it is empty" if not data.strip() else "what stands there is no certificate in PEM, or only a part of one"
        raise PemFileError(f"{path} cannot be used: {why}") from error
    return context


def _out_of_date(certificate: dict[str, Any]) -> str:
    now = time.time()
    name = ", ".join("=".join(pair) for part in certificate["subject"] for pair in part)
    if ssl.cert_time_to_seconds(certificate["notAfter"]) < now:
        return f"the certificate of {name} expired on {certificate['notAfter']}"
    if ssl.cert_time_to_seconds(certificate["notBefore"]) > now:
        return f"the certificate of {name} is not valid before {certificate['notBefore']}"
    return ""


def _refused(asking: ssl.SSLContext, serving: ssl.SSLContext) -> str:
    """Shake hands in memory; return why a side refuses, "" if neither does."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [asking.wrap_bio(to_client, to_server), serving.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(_MOST_FLIGHTS):
        for side in list(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message
            except ssl.SSLError as error:
                return str(error.reason)
            sides.remove(side)
        if not sides:
            return ""
    return "no handshake can be made with it"
