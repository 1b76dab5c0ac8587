"""Encode spans as OTLP protobuf. The only module that imports OpenTelemetry, and only its messages.

The SDK is not a dependency: if it is installed, redis-py imports it in every process, traced or not.
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

MAX_REASON = 200  # characters
SAMPLED = 1  # W3C trace flag
RESOURCE = "OTEL_RESOURCE_ATTRIBUTES"  # set by the environment: k8s.pod.name=a,team=b


class Collector:
    """A client that encodes spans and sends them to the collector, in the sending thread."""

    def __init__(self, settings: TracingSettings, name: str) -> None:
        """Prepare the resource of all spans. Raises SettingsError for an unusable CA file."""
        self._poster = Poster(settings)
        own = {
            "service.namespace": "penstock",
            "service.name": f"penstock-{name}",
            "service.instance.id": instance_id(name),
            "service.version": version("penstock"),
        }
        self._resource = Resource()
        _add(self._resource.attributes, {**parse_attributes(os.environ.get(RESOURCE, "")), **own})
        self._scope = InstrumentationScope(name="penstock", version=version("penstock"))

    def send(self, spans: Sequence[Finished]) -> tuple[int, str]:
        """Send spans and wait. Return how many the collector did not accept, and why."""
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
        except DecodeError:  # accepted, with an unreadable response
            return 0, ""
        why = f"it rejected some: {partly.error_message[:MAX_REASON]}" if partly.rejected_spans else ""
        return min(partly.rejected_spans, len(spans)), why

    def close(self) -> None:
        """Close the connection."""
        self._poster.close()

    def give_up(self) -> None:
        """Stop waiting for a retry. May be called from another thread."""
        self._poster.give_up()


def _fill(out: Span, span: Finished) -> None:
    """Fill a message in place: making it and copying it takes ten times as long."""
    out.trace_id = span.context.trace_id.to_bytes(16)
    out.span_id = span.context.span_id.to_bytes(8)
    if span.parent is not None:
        out.parent_span_id = span.parent.span_id.to_bytes(8)
    out.name = span.name
    out.kind = span.kind + 1  # type: ignore[assignment]  # OTLP counts from 1, the API from 0
    out.start_time_unix_nano, out.end_time_unix_nano = span.start_ns, span.end_ns
    out.flags = SAMPLED
    _add(out.attributes, span.attributes)
    for link in span.links:
        out.links.add(trace_id=link.trace_id.to_bytes(16), span_id=link.span_id.to_bytes(8))
    if span.error:
        _add(out.attributes, {"error.type": span.error})
        out.status.code = Status.STATUS_CODE_ERROR
        out.status.message = span.error


def _add(out: RepeatedCompositeFieldContainer[KeyValue], attributes: Mapping[str, Any]) -> None:
    """Add attributes: texts, integers, floats and booleans."""
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


def parse_attributes(text: str) -> dict[str, str]:
    """Parse OTEL_RESOURCE_ATTRIBUTES; malformed pairs are skipped."""
    pairs = (pair.partition("=") for pair in text.split(","))
    return {
        unquote(name.strip()): unquote(value.strip())
        for name, equals, value in pairs
        if equals and name.strip()
    }


def instance_id(name: str) -> str:
    """Return a unique `service.instance.id`, in the form of the store's session names."""
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64]
    return f"{name}-{host}-{os.getpid()}-{secrets.token_hex(4)}"
