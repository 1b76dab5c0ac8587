"""OpenTelemetry's collector in its own process; it writes the spans that edges send over OTLP to a file."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from services.system.pdeathsig import die_with_parent
from tests.live import until
from tests.servers import eventually, free_port
from tools.kubernetes.programs import find


@dataclass(frozen=True, slots=True)
class Seen:
    """A span as received by the collector."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str  # '' for the first one
    attributes: dict[str, Any]
    resource: dict[str, Any]
    links: list[tuple[str, str]]
    start_ns: int
    end_ns: int
    is_error: bool = field(default=False)

    @property
    def service(self) -> str:
        return str(self.resource["service.name"])


class Collector:
    """A collector that runs from `start` to `stop` on a fixed port."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._spans = folder / "spans.json"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._began = self._read = 0  # octets of the file: earlier tests', and those that have been read
        self._seen: list[Seen] = []
        config = {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{self.port}"}}}},
            "exporters": {"lines": {"path": str(self._spans)}},
            "service": {
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["lines"]}},
                "telemetry": {"metrics": {"level": "none"}},
            },
        }
        (folder / "config.yaml").write_text(yaml.safe_dump(config))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> tuple[str, ...]:
        """Return settings of an edge that exports here without delay."""
        return (f"tracing.endpoint={self.endpoint}", "tracing.interval_s=0.02", "tracing.most_per_s=1000")

    def start(self) -> Collector:
        """Wait until it listens."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [find("otelcol"), "--config", f"file:{self._folder / 'config.yaml'}"],
                stdout=log,
                stderr=log,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )
        try:
            eventually(self._listens)
        except AssertionError:
            self.stop()
            raise
        return self

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        with socket.create_connection(("127.0.0.1", self.port), 1):
            return True

    def stop(self) -> None:
        """Stop it; received spans are written."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None

    def begin(self) -> None:
        """Ignore spans received until now, which belong to earlier tests."""
        self._began = self._read = self._spans.stat().st_size if self._spans.exists() else 0
        self._seen.clear()

    def spans(self) -> list[Seen]:
        """Return the spans received until now, by their start."""
        lines = self._octets(self._read).splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        if whole:
            self._read += sum(map(len, whole))
            self._seen += [span for line in whole for span in _spans(json.loads(line))]
            self._seen.sort(key=lambda span: span.start_ns)
        return list(self._seen)

    def raw(self) -> bytes:
        """Return the text written until now."""
        return self._octets(self._began)

    def _octets(self, since: int) -> bytes:
        if not self._spans.exists():
            return b""
        with self._spans.open("rb") as file:
            file.seek(since)
            return file.read()

    def of_name(self, name: str) -> list[Seen]:
        return [span for span in self.spans() if span.name == name]

    async def has(self, *names: str) -> list[Seen]:
        """Wait until there is a span of each name; return the last of each."""
        await until(lambda: set(names) <= {span.name for span in self.spans()})
        return [self.of_name(name)[-1] for name in names]


def _spans(line: dict[str, Any]) -> list[Seen]:
    return [
        Seen(
            name=span["name"],
            kind={1: "internal", 3: "client", 4: "producer", 5: "consumer"}[span["kind"]],
            trace_id=span["traceId"],
            span_id=span["spanId"],
            parent_id=span.get("parentSpanId", ""),
            attributes=_values(span.get("attributes", [])),
            resource=_values(of_resource["resource"]["attributes"]),
            links=[(link["traceId"], link["spanId"]) for link in span.get("links", [])],
            start_ns=int(span["startTimeUnixNano"]),
            end_ns=int(span["endTimeUnixNano"]),
            is_error=span.get("status", {}).get("code") == 2,
        )
        for of_resource in line["resourceSpans"]
        for scope in of_resource["scopeSpans"]
        for span in scope["spans"]
    ]


def _values(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _value(pair["value"]) for pair in pairs}


def _value(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return int(content) if kind == "intValue" else content
