"""Test TLS without a socket: the context and the filter."""

from __future__ import annotations

import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from services.kit.config.layers import SettingsError
from services.kit.net.tls import ClientTls, TlsFilter, TlsSettings, client_context, server_context
from tests.kit.authority import Authority


def test_error_names_unusable_files(tmp_path: Path) -> None:
    settings = TlsSettings(certificate=tmp_path / "none.pem", key=tmp_path / "none.key")
    with pytest.raises(SettingsError, match=r"certificate: .*none\.pem cannot be read: No such file"):
        server_context(settings)


def test_context_forbids_renegotiation_and_compression(authority: Authority) -> None:
    """Check that the context forbids renegotiation and compression, by its settings.

    The test's library cannot request either.
    """
    context = server_context(TlsSettings(**authority.listener()))
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.num_tickets == 0
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    strict = server_context(TlsSettings(**authority.listener(min_version="1.3")))
    assert strict.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_server_filter_accepts_any_cut_of_the_bytes(authority: Authority, step: int) -> None:
    server = TlsFilter(server_context(TlsSettings(**authority.listener())))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = authority.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    plain = b""

    def carry() -> None:
        nonlocal plain
        data = outgoing.read()
        for start in range(0, len(data), step):
            plain += server.decrypt(data[start : start + step])
        incoming.write(server.output())

    while not server.established:
        with contextlib.suppress(ssl.SSLWantReadError):
            client.do_handshake()
        carry()
    client.write(b"hello ")
    client.write(b"world")
    with pytest.raises(ssl.SSLWantReadError):
        client.unwrap()
    carry()
    assert plain == b"hello world"
    assert server.ended
    assert server.fault is None
    incoming.write(server.encrypt(b"and back") + server.close_notify())
    assert client.read() == b"and back"


def test_mutated_handshake_is_only_a_fault(authority: Authority) -> None:
    """Check that a mutated ClientHello is refused as a fault, and raises no internal exception."""
    context = server_context(TlsSettings(**authority.listener()))
    outgoing = ssl.MemoryBIO()
    client = authority.client().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    faults = 0
    for position in range(len(hello)):
        for value in (0, 0x7F, 0xFF, hello[position] ^ 1):
            server = TlsFilter(context)
            assert server.decrypt(hello[:position] + bytes((value,)) + hello[position + 1 :]) == b""
            assert not server.established
            faults += server.fault is not None
    assert faults > 100


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_client_filter_accepts_any_cut_of_the_bytes(authority: Authority, step: int) -> None:
    called = TlsFilter(server_context(TlsSettings(**authority.listener())))
    caller = TlsFilter(client_context(ClientTls(**authority.dialler())), "localhost")
    assert called.client_hello() == b""
    sent = caller.client_hello()
    while sent:
        assert called.decrypt(sent) == b""
        answer = called.output()
        for start in range(0, len(answer), step):
            assert caller.decrypt(answer[start : start + step]) == b""
        sent = caller.output()
    assert called.established
    assert caller.established
    assert caller.subject == "localhost"
    sealed = called.encrypt(b"hello ") + called.encrypt(b"world") + called.close_notify()
    plain = b"".join(caller.decrypt(sealed[start : start + step]) for start in range(0, len(sealed), step))
    assert (plain, caller.ended, caller.fault) == (b"hello world", True, None)


@pytest.fixture
def depot(tmp_path: Path) -> dict[str, Path]:
    """Return a client's files, with a self-signed certificate that has names of all kinds."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "depot 7")])
    names = [
        x509.DNSName("depot.example.org"),
        x509.DNSName("*.example.org"),
        x509.UniformResourceIdentifier("spiffe://example.org/depot"),
        x509.IPAddress(IPv4Address("10.0.0.7")),
        x509.RFC822Name("depot@example.org"),
    ]
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    files = {"certificate": tmp_path / "depot.pem", "key": tmp_path / "depot.key"}
    files["certificate"].write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    files["key"].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


def test_certificate_names_are_common_name_dns_names_and_uris(
    authority: Authority, depot: dict[str, Path]
) -> None:
    """Check that certificate names are common name, DNS names and URIs.

    docs/operations.md, Who may use a queue: they are literal, also wildcards.
    """
    called = TlsFilter(server_context(TlsSettings(**authority.listener(client_ca=depot["certificate"]))))
    caller = TlsFilter(client_context(ClientTls(**authority.dialler(**depot))), "localhost")
    sent = caller.client_hello()
    while sent:
        called.decrypt(sent)
        caller.decrypt(called.output())
        sent = caller.output()
    assert called.established
    assert called.subject == "depot 7"
    assert called.names == {
        "depot 7",
        "depot.example.org",
        "*.example.org",
        "spiffe://example.org/depot",
    }
    assert caller.names == {"localhost"}
