"""Spans as OTLP has them, in protobuf: the one module that imports OpenTelemetry, and of it the messages alone.

Its SDK stays away: where that can be imported, redis-py imports it, in every process, traced or not.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from services.kit.config.settings import TracingSettings
from services.kit.tracing.http import Poster
from services.kit.tracing.recorder import Finished

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue

LONGEST_REASON = 200
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
        self._resource = Resource()
        _add(self._resource.attributes, {**said_elsewhere(os.environ.get(RESOURCE, "")), **own})
        self._scope = InstrumentationScope(name="penstock", version=version("penstock"))

    def send(self, spans: Sequence[Finished]) -> tuple[int, str]:
        """Waits; how many of them the collector has not taken, and why."""
        request = ExportTraceServiceRequest()
        of_resource = request.resource_spans.add(resource=self._resource)
        of_scope = of_resource.scope_spans.add(scope=self._scope)
        for span in spans:
            _fill(of_scope.spans.add(), span)
        answer, trouble = self._poster.post(request.SerializeToString())
        if trouble:
            return len(spans), trouble
        try:
            partly = ExportTraceServiceResponse.FromString(answer).partial_success
        except DecodeError:  # it has said yes, in other words than ours
            return 0, ""
        why = f"it rejected some: {partly.error_message[:LONGEST_REASON]}" if partly.rejected_spans else ""
        return min(partly.rejected_spans, len(spans)), why

    def close(self) -> None:
        self._poster.close()

    def give_up(self) -> None:
        self._poster.give_up()


def _fill(out: Span, span: Finished) -> None:
    """In place, field by field: made apart and copied, a message takes ten times as long."""
    out.trace_id = span.context.trace_id.to_bytes(16)
    out.span_id = span.context.span_id.to_bytes(8)
    if span.parent is not None:
        out.parent_span_id = span.parent.span_id.to_bytes(8)
    out.name = span.name
    out.kind = span.kind + 1  # type: ignore[assignment]  # its numbers are those of the API, from 1 on
    out.start_time_unix_nano, out.end_time_unix_nano = span.start_ns, span.end_ns
    out.flags = SAMPLED
    _add(out.attributes, span.attributes)
    for place in span.links:
        out.links.add(trace_id=place.trace_id.to_bytes(16), span_id=place.span_id.to_bytes(8))
    if span.error:
        _add(out.attributes, {"error.type": span.error})
        out.status.code = Status.STATUS_CODE_ERROR
        out.status.message = span.error


def _add(out: RepeatedCompositeFieldContainer[KeyValue], attributes: Mapping[str, Any]) -> None:
    """Of these types: text, whole numbers, numbers, yes and no."""
    for name, value in attributes.items():
        pair = out.add()
        pair.key = name
        match value:
            case str():
                pair.value.string_value = value.encode("utf-8", "replace").decode()
            case bool():
                pair.value.bool_value = value
            case int():
                pair.value.int_value = value
            case _:
                pair.value.double_value = value


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
