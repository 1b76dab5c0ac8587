"""Configure TLS of listeners and diallers, reload changed files, and encrypt one connection without a socket."""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from services.kit.config.layers import SettingsError
from services.kit.net.certificate_expiry import not_after

log = logging.getLogger(__name__)

READ_SIZE = 64 << 10  # bytes asked of OpenSSL at a time; a record holds 16 KiB
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class TlsSettings(BaseModel):
    """TLS files of a listener, in PEM. With `client_ca`, clients need a certificate of that authority (mTLS)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    certificate: Path = Field(description="certificate chain of the server, PEM")
    key: Path = Field(description="private key of the certificate, PEM, without a passphrase")
    client_ca: Path | None = Field(
        default=None, description="CA certificates (root or intermediate) that sign client certificates: mTLS"
    )
    min_version: Literal["1.2", "1.3"] = "1.2"

    @property
    def files(self) -> dict[str, Path]:
        """Return the files by setting."""
        found = {"certificate": self.certificate, "key": self.key, "client_ca": self.client_ca}
        return {name: file for name, file in found.items() if file is not None}


class ClientTls(BaseModel):
    """TLS files of a dialler, in PEM. With `certificate` and `key`, the server can authenticate us (mTLS)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ca: Path = Field(
        description="CA certificates (root or intermediate) that sign the server's certificate, PEM"
    )
    certificate: Path | None = Field(default=None, description="own certificate chain: mTLS")
    key: Path | None = Field(
        default=None, description="private key of the own certificate, without a passphrase"
    )
    server_name: str | None = Field(
        default=None, description="name in the server's certificate; default: the host dialled"
    )
    min_version: Literal["1.2", "1.3"] = "1.2"

    @model_validator(mode="after")
    def _both_or_none(self) -> ClientTls:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together: set both or neither")
        return self

    @property
    def files(self) -> dict[str, Path]:
        """Return the files by setting."""
        found = {"ca": self.ca, "certificate": self.certificate, "key": self.key}
        return {name: file for name, file in found.items() if file is not None}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return a listener's TLS context. Raises SettingsError if a file is missing or unusable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[settings.min_version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A client that sends and closes without reading would leave our session tickets unread. Its kernel would then send
    # a reset, which destroys what we have not read yet.
    context.num_tickets = 0
    with _naming(settings.files):
        context.load_cert_chain(settings.certificate, settings.key, password=_no_passphrase)
        if settings.client_ca is not None:
            context.load_verify_locations(settings.client_ca)
            trust_intermediates(context)
            context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(settings: ClientTls) -> ssl.SSLContext:
    """Return a dialler's TLS context. Raises SettingsError if a file is missing or unusable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies the certificate, and the name in it
    context.minimum_version = VERSIONS[settings.min_version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    with _naming(settings.files):
        context.load_verify_locations(settings.ca)
        trust_intermediates(context)
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, settings.key, password=_no_passphrase)
    return context


def trust_intermediates(context: ssl.SSLContext) -> None:
    """Accept chains that end at a CA of the file, also an intermediate one without its root."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


@contextlib.contextmanager
def _naming(files: Mapping[str, Path]) -> Iterator[None]:
    """Turn OSError into a SettingsError that names the file, or all files if OpenSSL rejects them."""
    for name, file in files.items():
        try:
            os.close(os.open(file, os.O_RDONLY))
        except OSError as error:
            raise SettingsError([f"{name}: {file} cannot be read: {error.strerror}"]) from None
    try:
        yield
    except OSError as error:  # also ssl.SSLError
        names = ", ".join(map(str, files.values()))
        raise SettingsError([f"TLS files {names}: {error.strerror or error}"]) from None


def _no_passphrase() -> str:
    raise ssl.SSLError("the private key has a passphrase, which is not supported")


class ReloadableTlsContext:
    """The TLS context of a listener or dialler; new connections use renewed files without a restart."""

    def __init__(self, settings: TlsSettings | ClientTls, name: str) -> None:
        """Load the files. `name` is their prefix in errors. Raises SettingsError if they are unusable."""
        self._settings = settings
        self._name = name
        self._stamp = self._read_stamp()
        self.context = self._load()
        self.not_after = self._read_expiry()  # of our certificate in use, in seconds since 1970

    def refresh(self) -> None:
        """Load the files again if they changed; keep the old context if the new files are unusable."""
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.context = self._load()
        except SettingsError as error:
            fields = {"action": "tls_reload_failed"}
            log.error("new TLS files are unusable, the old ones stay in use: %s", error, extra=fields)
        else:
            self.not_after = self._read_expiry()
            log.info("TLS files reloaded", extra={"action": "tls_reloaded"})

    def _load(self) -> ssl.SSLContext:
        settings = self._settings
        try:
            return server_context(settings) if isinstance(settings, TlsSettings) else client_context(settings)
        except SettingsError as error:
            raise SettingsError([f"{self._name}: {line}" for line in error.lines]) from None

    def _read_expiry(self) -> float | None:
        certificate = self._settings.certificate
        return None if certificate is None else not_after(certificate)

    def _read_stamp(self) -> tuple[int, ...]:
        try:
            return tuple(os.stat(file).st_mtime_ns for file in self._settings.files.values())
        except OSError:
            return ()


class TlsFilter:
    """One connection's TLS, without a socket: ciphertext in, plaintext out, and vice versa.

    A FIN without close_notify counts as the end of input, as it does in asyncio: many clients close that way. Known
    weakness: an attacker who can forge a FIN can end a connection's input.
    """

    __slots__ = ("_incoming", "_outgoing", "_tls", "ended", "established", "fault", "names", "subject")

    def __init__(self, context: ssl.SSLContext, server: str | None = None) -> None:
        """Act as a client of `server`, the name or address in its certificate; as a server if it is None."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        is_server = server is None
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, server_hostname=server)
        self.established = False
        self.subject: str | None = None  # of the peer's certificate, once established
        self.names: frozenset[str] = frozenset()  # common name, DNS names and URIs of the peer's certificate
        self.ended = False  # the peer has sent close_notify
        self.fault: ssl.SSLError | None = None  # the input is not valid TLS; nothing after it is read

    def client_hello(self) -> bytes:
        """Return a client's first message; nothing for a server."""
        if not self._tls.server_side:
            self.decrypt(b"")
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """Return the plaintext of complete records; afterwards read `output`, `ended` and `fault`.

        Complete records before a fault or close_notify are still returned, however the bytes were cut.
        """
        self._incoming.write(data)
        chunks: list[bytes] = []
        try:
            if not self.established:
                self._tls.do_handshake()
                self.established = True
                certificate = self._tls.getpeercert() or {}  # only of a verified one
                self.subject, self.names = _subject(certificate), _names(certificate)
            while chunk := self._tls.read(READ_SIZE):
                chunks.append(chunk)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.fault = error
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    @property
    def fault_text(self) -> str:
        """Return a description of the fault for the log."""
        fault = self.fault
        assert fault is not None
        text = fault.reason or str(fault)
        return f"{text}: {fault.verify_message}" if isinstance(fault, ssl.SSLCertVerificationError) else text

    def encrypt(self, data: bytes) -> bytes:
        """Return the ciphertext to send."""
        self._tls.write(data)
        return self._outgoing.read()

    def output(self) -> bytes:
        """Return pending messages of TLS itself: handshake, alerts, key updates."""
        return self._outgoing.read()

    def close_notify(self) -> bytes:
        """Return our close_notify; do not wait for the peer's."""
        if self.established:
            # OpenSSL wants the peer's close_notify, which may never come
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
        return self._outgoing.read()


def _common_names(certificate: dict[str, Any]) -> list[str]:
    subject = certificate.get("subject", ())
    return [str(value) for part in subject for kind, value in part if kind == "commonName"]


def _subject(certificate: dict[str, Any]) -> str | None:
    """Return the common name of a certificate as `ssl` describes it, else its first alternative name."""
    alternatives = (str(value) for _, value in certificate.get("subjectAltName", ()))
    return next(iter((*_common_names(certificate), *alternatives)), None)


def _names(certificate: dict[str, Any]) -> frozenset[str]:
    """Return the common name, and the DNS names and URIs among the alternative names."""
    alternatives = certificate.get("subjectAltName", ())
    return frozenset(
        (*_common_names(certificate), *(str(value) for kind, value in alternatives if kind in ("DNS", "URI")))
    )
