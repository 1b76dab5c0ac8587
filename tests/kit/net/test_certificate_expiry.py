"""Test reading the expiry of certificates."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from services.kit.net.certificate_expiry import not_after


def pem(end: datetime) -> bytes:
    return trustme.CA().issue_cert("shop.example.org", not_after=end).cert_chain_pems[0].bytes()


@pytest.mark.parametrize(
    "end",
    [
        datetime(2027, 2, 28, 23, 59, 59, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),  # the last date with a two-digit year
        datetime(2050, 1, 1, tzinfo=UTC),
    ],
)
def test_expiry_is_that_of_the_first_certificate(tmp_path: Path, end: datetime) -> None:
    chain = tmp_path / "chain.pem"
    chain.write_bytes(b"subject=caf\xe9\n" + pem(end) + pem(datetime(2099, 1, 1, tzinfo=UTC)))
    assert not_after(chain) == end.timestamp()


def test_invalid_certificate_has_no_expiry(tmp_path: Path) -> None:
    """Check that a certificate cut or changed at any octet has an expiry or none, without an error."""
    chain = tmp_path / "chain.pem"
    assert not_after(chain) is None
    whole = pem(datetime(2027, 2, 28, tzinfo=UTC))
    lines = whole.split(b"\n")
    for number in range(len(lines)):
        chain.write_bytes(b"\n".join(lines[:number] + lines[number + 1 :]))
        not_after(chain)
    for text in (b"", b"nothing", whole[:200], b"\n".join((*lines[:3], *lines[-2:]))):
        chain.write_bytes(text)
        assert not_after(chain) is None


def test_any_octets_give_an_expiry_or_none(tmp_path: Path) -> None:
    """Check that any octets give an expiry or none: each octet changed or last, and empty sequences."""
    chain = tmp_path / "chain.pem"
    whole = ssl.PEM_cert_to_DER_cert(pem(datetime(2027, 2, 28, tzinfo=UTC)).decode())

    def end(certificate: bytes) -> float | None:
        chain.write_text(ssl.DER_cert_to_PEM_cert(certificate))
        return not_after(chain)

    assert end(whole) == datetime(2027, 2, 28, tzinfo=UTC).timestamp()
    assert end(b"\x30\x00") is None
    for at, octet in enumerate(whole):
        assert end(whole[:at]) is None
        for other in {0, 1, 0x80, 0xFF, octet ^ 1} - {octet}:
            end(whole[:at] + bytes([other]) + whole[at + 1 :])
