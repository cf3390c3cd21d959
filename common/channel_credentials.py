"""The TLS credentials of a gRPC channel, from the PEM files that settings name."""

from pathlib import Path

import grpc

from common.pem_files import PemFileError, check_authorities, check_pair, read_pem
from common.settings import PREFIX, SettingsError


def channel_credentials(
    authorities: Path | None, certificate: Path | None, key: Path | None, *, own: str
) -> grpc.ChannelCredentials:
    """Return credentials that trust `authorities` (None: those of the machine) and show a certificate, if there is one.

    `own` begins the names of the settings of certificate and key. Raises SettingsError if a file cannot be used.
    """
    trusted = chain = private = None
    try:
        if authorities is not None:
            trusted = read_pem(authorities)
            check_authorities(authorities, trusted)
    except PemFileError as error:
        raise SettingsError(f"{PREFIX}GATEWAY_CA: {error}") from error
    try:
        if certificate is not None and key is not None:
            chain, private = read_pem(certificate), read_pem(key)
            check_pair(certificate, key, chain, of_server=False)
    except PemFileError as error:
        raise SettingsError(f"{PREFIX}{own}_TLS_CERT, _KEY: {error}") from error
    return grpc.ssl_channel_credentials(trusted, private, chain)
