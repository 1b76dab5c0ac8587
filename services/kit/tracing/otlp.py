"""Spans as OTLP has them, in protobuf: the one module that imports OpenTelemetry, and of it the messages alone.

Its SDK stays away: where that can be imported, redis-py imports it, in every process, traced or not.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from services.kit.settings import TracingSettings
from services.kit.tracing.http import Poster
from services.kit.tracing.recorder import Finished

SAMPLED = 1  # of W3C's flags
RESOURCE = "OTEL_RESOURCE_ATTRIBUTES"  # whoever runs the process says more about it: k8s.pod.name=a,team=b


class Collector:
    """Spans are made into messages here, in the thread that sends them: nobody who is traced waits for that."""

    def __init__(self, settings: TracingSettings, name: str) -> None:
        """Raises SettingsError."""
        self._poster = Poster(settings)
        own = {
            "service.namespace": "penstock",
            "service.name": f"penstock-{name}",
            "service.instance.id": instance(name),
            "service.version": version("penstock"),
        }
        self._resource = Resource(attributes=_pairs({**said_elsewhere(os.environ.get(RESOURCE, "")), **own}))
        self._scope = InstrumentationScope(name="penstock", version=version("penstock"))

    def send(self, spans: Sequence[Finished]) -> tuple[int, str]:
        """Waits; how many of them the collector has not taken, and why."""
        scoped = ScopeSpans(scope=self._scope, spans=map(_span, spans))
        request = ExportTraceServiceRequest(
            resource_spans=[ResourceSpans(resource=self._resource, scope_spans=[scoped])]
        )
        answer, trouble = self._poster.post(request.SerializeToString())
        if trouble:
            return len(spans), trouble
        partly = ExportTraceServiceResponse.FromString(answer).partial_success
        return min(partly.rejected_spans, len(spans)), partly.error_message if partly.rejected_spans else ""

    def close(self) -> None:
        self._poster.close()

    def give_up(self) -> None:
        self._poster.give_up()


def _span(span: Finished) -> Span:
    attributes = {**span.attributes, "error.type": span.error} if span.error else span.attributes
    return Span(
        trace_id=span.context.trace_id.to_bytes(16),
        span_id=span.context.span_id.to_bytes(8),
        parent_span_id=b"" if span.parent is None else span.parent.span_id.to_bytes(8),
        name=span.name,
        kind=span.kind + 1,  # type: ignore[arg-type]  # its numbers are those of the API, from 1 on
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=_pairs(attributes),
        links=[
            Span.Link(trace_id=at.trace_id.to_bytes(16), span_id=at.span_id.to_bytes(8)) for at in span.links
        ],
        status=Status(code=Status.STATUS_CODE_ERROR, message=span.error) if span.error else None,
        flags=SAMPLED,
    )


def _pairs(attributes: Mapping[str, Any]) -> Iterable[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items()]


def _value(value: str | int | float | bool) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
    return AnyValue(string_value=value.encode("utf-8", "replace").decode())


def said_elsewhere(text: str) -> dict[str, str]:
    """Attributes of the resource as OpenTelemetry writes them into a variable; what is none is left out."""
    pairs = (pair.partition("=") for pair in text.split(","))
    return {
        unquote(name.strip()): unquote(value.strip())
        for name, equals, value in pairs
        if equals and name.strip()
    }


def instance(name: str) -> str:
    """As sessions of the store are named, for a process that may have several, one after the other."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64]
    return f"{name}-{host}-{os.getpid()}-{secrets.token_hex(4)}"
