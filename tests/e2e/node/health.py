"""Whether a program of the cluster says that it is well."""

from __future__ import annotations

import ssl
from urllib.error import HTTPError
from urllib.request import urlopen

TIMEOUT_S = 5.0


def says_ok(address: str) -> bool:
    """Raises OSError while nobody answers. Certificates are those that it made for itself."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urlopen(address, timeout=TIMEOUT_S, context=trusting) as answer:
            return bool(answer.status == 200)
    except HTTPError as refusal:
        refusal.close()  # it holds the connection
        return False
