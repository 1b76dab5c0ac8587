"""OTLP's way over HTTP: one request after the other, on one connection, tried again as its specification says.

Whoever is sent elsewhere does not go there: headers are for the collector that was named.
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
from services.kit.tracing.deadline_socket import Clocked, connect
from services.outside.url import Url, parse_url

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
BUSY = (429, 503)  # with them it may say when: Retry-After
MOST_BUSY_S = 60.0  # that it is believed
LONGEST_ANSWER = 1 << 16  # octets


class Poster:
    """Each request, with all its tries, has `timeout_s` of the settings from when it begins.

    Before that it waits for as long as the collector has asked for, `MOST_BUSY_S` at most. For one thread, but for
    `give_up`, which ends all waiting between requests.
    """

    def __init__(self, settings: TracingSettings) -> None:
        """Raises SettingsError."""
        url = _traces_url(settings)
        self._path = url.path + (f"?{url.query}" if url.query else "")
        self._timeout_s = settings.timeout_s
        self._headers = {name: value.reveal() for name, value in settings.headers.items()}
        if url.user:
            told = f"{url.user}:{url.password or ''}".encode()
            self._headers.setdefault("authorization", f"Basic {base64.b64encode(told).decode()}")
        self._headers |= {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
        self._tls = _context(settings) if url.scheme == "https" else None
        ((host, port),) = url.hosts
        self._connection = (
            http.client.HTTPConnection(host, port)
            if self._tls is None
            else http.client.HTTPSConnection(host, port, context=self._tls)
        )
        self._clocked: Clocked | None = None  # its socket, as long as it has one
        self._not_before = 0.0  # as it asked, by time.monotonic
        self._stopped = threading.Event()

    def post(self, body: bytes) -> tuple[bytes, str]:
        """What was answered, and ''; or why nothing was."""
        pause_s = self._not_before - time.monotonic()
        if pause_s > 0 and self._stopped.wait(pause_s):
            return b"", "it had asked for a pause"
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
        self._connection.close()
        self._clocked = None

    def give_up(self) -> None:
        """From another thread: whoever waits for another try ends."""
        self._stopped.set()

    def _try(self, packed: bytes, end: float) -> tuple[bytes, str, bool]:
        """The answer, the trouble, and whether that may be another one the next time."""
        try:
            self._connect(end)
            self._connection.request("POST", self._path, packed, self._headers)
            answer = self._connection.getresponse()
            octets = answer.read(LONGEST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return b"", f"{type(error).__name__}: {error}", True
        if not answer.isclosed():
            self.close()  # it says more than anybody wants to know
        if 200 <= answer.status < 300:
            return octets, "", False
        if answer.status in BUSY:
            self._not_before = time.monotonic() + min(
                retry_after_s(answer.headers["Retry-After"]), MOST_BUSY_S
            )
        return b"", f"it answers {answer.status} {answer.reason}", answer.status in AGAIN

    def _connect(self, end: float) -> None:
        """`http.client` closes what the collector does not keep."""
        connection = self._connection
        if connection.sock is None or self._clocked is None:
            self._clocked = connect(connection.host, connection.port, self._tls, end)
            connection.sock = self._clocked  # all that it asks of one
        self._clocked.end = end


def retry_after_s(retry_after: str | None) -> float:
    """Seconds from now. RFC 9110, 10.2.3: a number of seconds, or a date; 0 for what is neither."""
    said = (retry_after or "").strip()
    if said.isascii() and said.isdecimal():
        return float(said)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(said).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return 0.0


def _traces_url(settings: TracingSettings) -> Url:
    """Return the URL that traces are posted to, as OpenTelemetry makes it.

    https://opentelemetry.io/docs/specs/otel/protocol/exporter/#endpoint-urls-for-otlphttp: of a base URL that ends with
    the path already (older versions took it as it was) the path is not appended twice.
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
        raise SettingsError([f"tracing.ca: {settings.ca}: cannot be used: {error}"]) from None
