"""Until when a certificate is valid: the one thing that Python's `ssl` does not say of our own."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
VERSION, UTC_TIME = 0xA0, 0x17  # tags of DER; any other time is a GeneralizedTime
VALIDITY = 3  # of TBSCertificate's parts, behind serialNumber, signature and issuer (RFC 5280 4.1)


def not_after(chain: Path) -> float | None:
    """In seconds since 1970, of the first certificate of a chain in PEM; None where that cannot be read."""
    try:
        found = PEM.search(chain.read_text("latin-1"))
        return None if found is None else _not_after(ssl.PEM_cert_to_DER_cert(found[0]))
    except (OSError, ValueError, IndexError):
        return None


def _not_after(certificate: bytes) -> float:
    """Raises ValueError or IndexError for what is no certificate."""
    ((_, signed),) = _parts(certificate)
    (_, to_be_signed), *_ = _parts(signed)
    parts = [content for tag, content in _parts(to_be_signed) if tag != VERSION]
    _, (tag, told) = _parts(parts[VALIDITY])
    text = told.decode("ascii")
    if tag == UTC_TIME:  # RFC 5280 4.1.2.5.1: until 2049
        text = ("20" if text < "50" else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element of a DER sequence's content."""
    at = 0
    while at < len(data):
        tag, length, start = data[at], data[at + 1], at + 2
        if length & 0x80:
            more = length & 0x7F
            length, start = int.from_bytes(data[start : start + more]), start + more
        at = start + length
        if at > len(data):
            raise ValueError("an element is cut short")
        yield tag, data[start:at]
