"""TLS of a listener or a dialler: settings, contexts (renewed when the files change), and the filter of one connection,
which turns bytes into bytes and knows no socket."""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from services.kit.config.layers import SettingsError
from services.kit.net.certificate import not_after

log = logging.getLogger(__name__)

READ_SIZE = 64 << 10  # bytes asked of OpenSSL at a time; a record holds 16 KiB
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class TlsSettings(BaseModel):
    """Files in PEM. With `client_ca` only clients with a certificate of that authority get in (mTLS)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    certificate: Path = Field(description="certificate chain of the server, PEM")
    key: Path = Field(description="private key of the certificate, PEM, without a passphrase")
    client_ca: Path | None = Field(
        default=None, description="authorities of client certificates, root or intermediate ones: mTLS"
    )
    min_version: Literal["1.2", "1.3"] = "1.2"

    @property
    def files(self) -> dict[str, Path]:
        """By field."""
        found = {"certificate": self.certificate, "key": self.key, "client_ca": self.client_ca}
        return {name: file for name, file in found.items() if file is not None}


class ClientTls(BaseModel):
    """Files in PEM. The server's certificate is verified; with `certificate` and `key` it learns who we are (mTLS)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ca: Path = Field(description="authorities of the server's certificate, root or intermediate ones, PEM")
    certificate: Path | None = Field(default=None, description="our own certificate chain: mTLS")
    key: Path | None = Field(default=None, description="private key of our certificate, without a passphrase")
    server_name: str | None = Field(default=None, description="in its certificate; none: the host dialled")
    min_version: Literal["1.2", "1.3"] = "1.2"

    @model_validator(mode="after")
    def _both_or_none(self) -> ClientTls:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together: give both, or neither")
        return self

    @property
    def files(self) -> dict[str, Path]:
        """By field."""
        found = {"ca": self.ca, "certificate": self.certificate, "key": self.key}
        return {name: file for name, file in found.items() if file is not None}


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Raises SettingsError if a file is missing or is not what it should be."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[settings.min_version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # A client that sends and closes without ever reading would leave our session tickets unread, and its
    # kernel would then send a reset that destroys what we had not read yet.
    context.num_tickets = 0
    with _naming(settings.files):
        context.load_cert_chain(settings.certificate, settings.key, password=_no_passphrase)
        if settings.client_ca is not None:
            context.load_verify_locations(settings.client_ca)
            trust_intermediates(context)
            context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(settings: ClientTls) -> ssl.SSLContext:
    """Raises SettingsError if a file is missing or is not what it should be."""
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
    """Accept chains that end at an authority of the file: the root above an intermediate one may be missing."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


@contextlib.contextmanager
def _naming(files: Mapping[str, Path]) -> Iterator[None]:
    """Raise SettingsError for the file that cannot be read, or for all if OpenSSL cannot use them."""
    for name, file in files.items():
        try:
            os.close(os.open(file, os.O_RDONLY))
        except OSError as error:
            raise SettingsError([f"{name}: {file} cannot be read: {error.strerror}"]) from None
    try:
        yield
    except OSError as error:  # ssl.SSLError is one
        names = ", ".join(map(str, files.values()))
        raise SettingsError([f"TLS files {names}: {error.strerror or error}"]) from None


def _told(name: str, make: Callable[[], ssl.SSLContext]) -> Callable[[], ssl.SSLContext]:
    """Return `make` with `name` before each line of its errors."""

    def made() -> ssl.SSLContext:
        try:
            return make()
        except SettingsError as error:
            raise SettingsError([f"{name}: {line}" for line in error.lines]) from None

    return made


def _no_passphrase() -> str:
    raise ssl.SSLError("the private key has a passphrase: none can be given here")


class ReloadableTlsContext:
    """The current context; new connections see renewed certificates without a restart."""

    def __init__(
        self, files: Sequence[Path], make: Callable[[], ssl.SSLContext], certificate: Path | None
    ) -> None:
        """certificate: ours, one of the files. Raises SettingsError, as `make` does with files that it cannot use."""
        self._files = files
        self._make = make
        self._certificate = certificate
        self._stamp = self._read_stamp()
        self.context = make()
        self.not_after = self._read_end()  # of our certificate that is in use, in seconds since 1970

    @classmethod
    def for_server(cls, settings: TlsSettings, name: str) -> ReloadableTlsContext:
        """Return the keeper of a listener's files. `name` says in errors where they are named."""
        return cls(
            [*settings.files.values()], _told(name, partial(server_context, settings)), settings.certificate
        )

    @classmethod
    def for_client(cls, settings: ClientTls, name: str) -> ReloadableTlsContext:
        """Return the keeper of a dialler's files. `name` says in errors where they are named."""
        return cls(
            [*settings.files.values()], _told(name, partial(client_context, settings)), settings.certificate
        )

    def refresh(self) -> None:
        """Load the files again if they changed; if they are not whole (yet), the old ones stay in use."""
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.context = self._make()
        except SettingsError as error:
            log.error("new TLS files are not usable: %s", error, extra={"action": "tls_reload_failed"})
        else:
            self.not_after = self._read_end()
            log.info("TLS files loaded anew", extra={"action": "tls_reloaded"})

    def _read_end(self) -> float | None:
        return None if self._certificate is None else not_after(self._certificate)

    def _read_stamp(self) -> tuple[int, ...]:
        try:
            return tuple(os.stat(file).st_mtime_ns for file in self._files)
        except OSError:
            return ()


class TlsFilter:
    """One connection's TLS: ciphertext in, plaintext out, and the other way round.

    A FIN without TLS's own goodbye counts as the end of input, as it does in asyncio: too many clients close
    that way. Known weakness: whoever can forge a FIN can end a connection's input.
    """

    __slots__ = ("_incoming", "_outgoing", "_tls", "ended", "established", "fault", "names", "subject")

    def __init__(self, context: ssl.SSLContext, server: str | None = None) -> None:
        """server: whom we call, name or address, as its certificate has to say; None: we are called."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        is_server = server is None
        self._tls = context.wrap_bio(self._incoming, self._outgoing, is_server, server_hostname=server)
        self.established = False
        self.subject: str | None = None  # whom the peer's certificate names, once established
        self.names: frozenset[str] = frozenset()  # all that it says of him
        self.ended = False  # the peer said goodbye: its close_notify has come
        self.fault: ssl.SSLError | None = None  # what came cannot be TLS; nothing after it is read

    def greeting(self) -> bytes:
        """What is to be sent before anything has come: who calls begins."""
        if not self._tls.server_side:
            self.decrypt(b"")
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """Plaintext that has become whole; afterwards look at `output`, `ended` and `fault`.

        What came whole before a fault or the goodbye is still returned, however the bytes were cut.
        """
        self._incoming.write(data)
        chunks: list[bytes] = []
        try:
            if not self.established:
                self._tls.do_handshake()
                self.established = True
                certificate = self._tls.getpeercert() or {}  # of one that was verified
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
    def trouble(self) -> str:
        """The fault in a few words for the log."""
        fault = self.fault
        assert fault is not None
        said = fault.reason or str(fault)
        return f"{said}: {fault.verify_message}" if isinstance(fault, ssl.SSLCertVerificationError) else said

    def encrypt(self, data: bytes) -> bytes:
        """Ciphertext to send now, all of it."""
        self._tls.write(data)
        return self._outgoing.read()

    def output(self) -> bytes:
        """What TLS itself has to say: handshake, alerts, key updates."""
        return self._outgoing.read()

    def goodbye(self) -> bytes:
        """Our close_notify; the peer's is not waited for."""
        if self.established:
            with contextlib.suppress(ssl.SSLError):  # it wants the peer's close_notify, which may never come
                self._tls.unwrap()
        return self._outgoing.read()


def _subject(certificate: dict[str, Any]) -> str | None:
    """Its common name, else its first alternative name. `certificate` as `ssl` describes it."""
    for part in certificate.get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    for _, value in certificate.get("subjectAltName", ()):
        return str(value)
    return None


def _names(certificate: dict[str, Any]) -> frozenset[str]:
    """Its common name, and the DNS names and URIs among the alternative ones."""
    subject = (
        value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"
    )
    others = (value for kind, value in certificate.get("subjectAltName", ()) if kind in ("DNS", "URI"))
    return frozenset(map(str, (*subject, *others)))
