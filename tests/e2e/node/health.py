"""Health checks of the cluster's programs."""

from __future__ import annotations

import ssl
from urllib.error import HTTPError
from urllib.request import urlopen

TIMEOUT_S = 5.0


def says_ok(address: str) -> bool:
    """Return whether a health page answers 200, with any certificate. Raise OSError while there is no answer."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urlopen(address, timeout=TIMEOUT_S, context=trusting) as answer:
            return bool(answer.status == 200)
    except HTTPError as refusal:
        refusal.close()  # releases the connection
        return False
