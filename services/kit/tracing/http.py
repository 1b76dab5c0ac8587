"""OTLP's way over HTTP: one request after the other, on one connection, tried again as its specification says."""

from __future__ import annotations

import base64
import gzip
import http.client
import ssl
import threading
import time
from urllib.parse import unquote, urlsplit

from services.kit.layers import SettingsError
from services.kit.settings import TracingSettings

PATH = "/v1/traces"
AGAIN = (429, 502, 503, 504)  # OTLP/HTTP, Failures: may be tried again
PAUSES_S = (
    0.0,
    0.5,
    1.0,
    2.0,
    4.0,
    8.0,
)  # before each further try; none: the connection may just have been idle too long
LONGEST_ANSWER = 1 << 16  # octets


class Poster:
    """All of it within `timeout_s` of the settings. For one thread, but for `give_up`."""

    def __init__(self, settings: TracingSettings) -> None:
        """Raises SettingsError."""
        assert settings.endpoint is not None
        parts = urlsplit(settings.endpoint)
        self._path = (
            PATH if parts.path in ("", "/") else parts.path + (f"?{parts.query}" if parts.query else "")
        )
        self._timeout_s = settings.timeout_s
        self._headers = {name: value.reveal() for name, value in settings.headers.items()}
        if parts.username:
            told = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers.setdefault("authorization", f"Basic {base64.b64encode(told).decode()}")
        self._headers |= {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
        host = parts.hostname or ""
        self._connection = (
            http.client.HTTPSConnection(host, parts.port, context=_context(settings))
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port)
        )
        self._stopped = threading.Event()

    def post(self, body: bytes) -> tuple[bytes, str]:
        """What was answered, and ''; or why nothing was."""
        packed, end = gzip.compress(body, 1), time.monotonic() + self._timeout_s
        trouble = ""
        for pause_s in PAUSES_S:
            if trouble and (time.monotonic() + pause_s >= end or self._stopped.wait(pause_s)):
                break
            answer, trouble, may_try_again = self._try(packed, end - time.monotonic())
            if not (trouble and may_try_again):
                return answer, trouble
        return b"", trouble

    def close(self) -> None:
        self._connection.close()

    def give_up(self) -> None:
        """From another thread: whoever waits for another try ends."""
        self._stopped.set()

    def _try(self, packed: bytes, rest_s: float) -> tuple[bytes, str, bool]:
        """The answer, the trouble, and whether that may be another one the next time."""
        connection = self._connection
        connection.timeout = rest_s
        if connection.sock is not None:
            connection.sock.settimeout(rest_s)
        try:
            connection.request("POST", self._path, packed, self._headers)
            answer = connection.getresponse()
            octets = answer.read(LONGEST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return b"", f"{type(error).__name__}: {error}", True
        if not answer.isclosed():
            connection.close()  # it says more than anybody wants to know
        if 200 <= answer.status < 300:
            return octets, "", False
        return b"", f"it answers {answer.status} {answer.reason}", answer.status in AGAIN


def _context(settings: TracingSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.ca)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError([f"tracing.ca: {settings.ca}: cannot be used: {error}"]) from None
