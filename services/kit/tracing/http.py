"""Post OTLP requests over one HTTP connection, and retry them as the specification says.

Redirects are not followed: the headers are secret, and meant for the configured collector only.
"""

from __future__ import annotations

import base64
import email.utils
import gzip
import http.client
import ssl
import threading
import time
from dataclasses import replace

from services.kit.config.layers import SettingsError
from services.kit.config.settings import TracingSettings
from services.kit.net.tls import trust_intermediates
from services.kit.tracing.deadline_socket import DeadlineSocket, connect
from services.outside.url import Url, parse_url

PATH = "/v1/traces"
AGAIN = (429, 502, 503, 504)  # OTLP/HTTP, Failures: retryable
# Before each try. The second follows at once: the first may have failed because the connection was idle for too long.
PAUSES_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
BUSY = (429, 503)  # may come with Retry-After
MAX_RETRY_AFTER_S = 60.0
MAX_RESPONSE = 1 << 16  # octets


class Poster:
    """A client of one collector, for one thread.

    A request with all its retries takes at most `timeout_s`, after the pause that the collector has asked for.
    """

    def __init__(self, settings: TracingSettings) -> None:
        """Prepare the requests. Raises SettingsError for an unusable CA file."""
        url = _traces_url(settings)
        self._path = url.path + (f"?{url.query}" if url.query else "")
        self._timeout_s = settings.timeout_s
        self._headers = {name: value.reveal() for name, value in settings.headers.items()}
        if url.user:
            login = f"{url.user}:{url.password or ''}".encode()
            self._headers.setdefault("authorization", f"Basic {base64.b64encode(login).decode()}")
        self._headers |= {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
        self._tls = _context(settings) if url.scheme == "https" else None
        ((host, port),) = url.hosts
        self._connection = (
            http.client.HTTPConnection(host, port)
            if self._tls is None
            else http.client.HTTPSConnection(host, port, context=self._tls)
        )
        self._socket: DeadlineSocket | None = None  # of the connection, while it is open
        self._not_before = 0.0  # as the collector asked (time.monotonic)
        self._stopped = threading.Event()

    def post(self, body: bytes) -> tuple[bytes, str]:
        """Return the response and '', or b'' and the error."""
        pause_s = self._not_before - time.monotonic()
        if pause_s > 0 and self._stopped.wait(pause_s):
            return b"", "it asked for a pause"
        packed, end = gzip.compress(body, 1), time.monotonic() + self._timeout_s
        trouble = ""
        for pause_s in PAUSES_S:
            now = time.monotonic()
            wait_s = max(pause_s, self._not_before - now)
            if trouble and (now + wait_s >= end or self._stopped.wait(wait_s)):
                break
            answer, trouble, may_try_again = self._try(packed, end)
            if not (trouble and may_try_again):
                return answer, trouble
        return b"", trouble

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._socket = None

    def give_up(self) -> None:
        """Stop waiting for a retry. May be called from another thread."""
        self._stopped.set()

    def _try(self, packed: bytes, end: float) -> tuple[bytes, str, bool]:
        """Return the response, the error, and whether a retry may succeed."""
        try:
            self._connect(end)
            self._connection.request("POST", self._path, packed, self._headers)
            answer = self._connection.getresponse()
            octets = answer.read(MAX_RESPONSE)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return b"", f"{type(error).__name__}: {error}", True
        if not answer.isclosed():
            self.close()  # the response is too long
        if 200 <= answer.status < 300:
            return octets, "", False
        if answer.status in BUSY:
            self._not_before = time.monotonic() + min(
                retry_after_s(answer.headers["Retry-After"]), MAX_RETRY_AFTER_S
            )
        return b"", f"it responds with {answer.status} {answer.reason}", answer.status in AGAIN

    def _connect(self, end: float) -> None:
        """Connect unless `http.client` has kept the connection open, and set the deadline."""
        connection = self._connection
        if connection.sock is None or self._socket is None:
            self._socket = connect(connection.host, connection.port, self._tls, end)
            connection.sock = self._socket
        self._socket.end = end


def retry_after_s(retry_after: str | None) -> float:
    """Parse Retry-After into seconds: a number or a date (RFC 9110, 10.2.3); 0 if it is neither."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return 0.0


def _traces_url(settings: TracingSettings) -> Url:
    """Return the URL for traces, as OpenTelemetry builds it; a path that is there already is not appended twice.

    https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp
    """
    if settings.traces_endpoint is not None:
        url = parse_url(settings.traces_endpoint.reveal())
        return replace(url, path=url.path or "/")
    assert settings.endpoint is not None
    url = parse_url(settings.endpoint.reveal())
    base = url.path.rstrip("/").removesuffix(PATH)
    return replace(url, path=base + PATH)


def _context(settings: TracingSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca)
        trust_intermediates(context)
        return context
    except (OSError, ssl.SSLError) as error:
        raise SettingsError([f"tracing.ca: {settings.ca} is unusable: {error}"]) from None
