"""OTLP over HTTP with protobuf, by OpenTelemetry's exporter: the one module that imports OpenTelemetry."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from services.kit.settings import TracingSettings
from services.kit.tracing.recorder import Finished, Place

PATH = "/v1/traces"
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
KINDS = {0: SpanKind.INTERNAL, 2: SpanKind.CLIENT, 3: SpanKind.PRODUCER, 4: SpanKind.CONSUMER}
OK = Status(StatusCode.UNSET)
EXPORTERS_LOG = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class Collector:
    """Spans are made into OpenTelemetry's here, in the thread that sends them: nobody who is traced waits for that."""

    def __init__(self, settings: TracingSettings, name: str) -> None:
        assert settings.endpoint is not None
        self._resource = Resource.create(
            {
                "service.namespace": "penstock",
                "service.name": f"penstock-{name}",
                "service.instance.id": instance(name),
                "service.version": _version(),
            }
        )
        self._scope = InstrumentationScope("penstock", _version())
        headers = {key: value.reveal() for key, value in settings.headers.items()}
        self._exporter = OTLPSpanExporter(
            full(settings.endpoint), headers=headers, timeout=settings.timeout_s
        )
        self._heard = _Heard()
        logging.getLogger(EXPORTERS_LOG).addFilter(self._heard)

    def send(self, spans: Sequence[Finished]) -> str:
        self._heard.last = ""
        if self._exporter.export([self._made(span) for span in spans]) is SpanExportResult.SUCCESS:
            return ""
        return self._heard.last or "the collector did not take them"

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _made(self, span: Finished) -> ReadableSpan:
        attributes = {**span.attributes, "error.type": span.error} if span.error else span.attributes
        return ReadableSpan(
            span.name,
            context=_context(span.context),
            parent=None if span.parent is None else _context(span.parent, is_remote=True),
            resource=self._resource,
            attributes=attributes,
            links=[Link(_context(place, is_remote=True)) for place in span.links],
            kind=KINDS[span.kind],
            status=Status(StatusCode.ERROR, span.error) if span.error else OK,
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )


class _Heard(logging.Filter):
    """The exporter logs each failure as an error: the recorder tells once that they begin, in what was said here."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""

    def filter(self, record: logging.LogRecord) -> bool:
        self.last = record.getMessage()
        return False


def _context(place: Place, is_remote: bool = False) -> SpanContext:
    return SpanContext(place.trace_id, place.span_id, is_remote, SAMPLED)


def full(endpoint: str) -> str:
    """The URL of traces: where only a server is named, the usual path is meant."""
    return endpoint.rstrip("/") + PATH if urlsplit(endpoint).path in ("", "/") else endpoint


def instance(name: str) -> str:
    """As sessions of the store are named, for a process that may have several, one after the other."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64]
    return f"{name}-{host}-{os.getpid()}-{secrets.token_hex(4)}"


def _version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "unknown"
