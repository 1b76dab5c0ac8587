"""Read the expiry of a certificate file: Python's `ssl` does not report it for our own certificates."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
VERSION, UTC_TIME = 0xA0, 0x17  # tags of DER; any other time is a GeneralizedTime
VALIDITY = 3  # index in TBSCertificate, after serialNumber, signature and issuer (RFC 5280 4.1)


def not_after(chain: Path) -> float | None:
    """Return the expiry of the first certificate in a PEM chain, in seconds since 1970; None if it is unreadable."""
    try:
        found = PEM.search(chain.read_text("latin-1"))
        return None if found is None else _not_after(ssl.PEM_cert_to_DER_cert(found[0]))
    except (OSError, ValueError, IndexError):
        return None


def _not_after(certificate: bytes) -> float:
    """Parse the expiry in a DER certificate. Raises ValueError or IndexError if it is malformed."""
    ((_, signed),) = _elements(certificate)
    (_, to_be_signed), *_ = _elements(signed)
    fields = [content for tag, content in _elements(to_be_signed) if tag != VERSION]
    _, (tag, octets) = _elements(fields[VALIDITY])
    text = octets.decode("ascii")
    if tag == UTC_TIME:  # RFC 5280 4.1.2.5.1: until 2049
        text = ("20" if text < "50" else "19") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and the content of each DER element."""
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
