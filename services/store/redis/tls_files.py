"""Check the TLS files that a store URL names."""

from __future__ import annotations

import os
import ssl

from services.outside.url import BadUrl
from services.store.redis.url import TLS_OPTIONS, StoreUrl

CA, CERTIFICATE, KEY = TLS_OPTIONS


def check_files(url: StoreUrl) -> None:
    """Raise BadUrl, which names the option and the file, for a TLS file that cannot be used."""
    if trouble := file_trouble(url):
        raise BadUrl(trouble)


def file_trouble(url: StoreUrl) -> str:
    """Return which TLS file cannot be used now, and why; '' if all can. Paths are not secret."""
    files = {name: path for name, path in url.options.items() if name in TLS_OPTIONS}
    for name, path in files.items():
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError as error:
            return f"{name}: {path} cannot be read: {error.strerror}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if CA in files:
        try:
            context.load_verify_locations(files[CA])
        except OSError as error:  # ssl.SSLError is one
            return f"{CA}: {files[CA]} has no usable PEM certificate: {error.strerror or error}"
    if CERTIFICATE in files:
        key = files.get(KEY, files[CERTIFICATE])
        try:
            context.load_cert_chain(files[CERTIFICATE], key, password=_no_passphrase)
        except OSError as error:
            reason = error.strerror or error
            return f"{CERTIFICATE} {files[CERTIFICATE]} with the key in {key} cannot be used: {reason}"
    return ""


def _no_passphrase() -> str:
    raise ssl.SSLError("the private key has a passphrase; use a key without one")
