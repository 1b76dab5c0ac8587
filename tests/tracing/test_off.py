"""Tracing is off by default: OpenTelemetry is not imported, and operations are not wrapped."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from services.kit.config.layers import SettingsError
from services.kit.config.settings import TracingSettings, load
from services.kit.tracing import tracing
from tests.servers import Server
from tests.tracing.collector import Collector
from tests.tracing.programs import TmqProgram
from tests.tracing.stores import traced_store


async def test_untraced_edge_does_not_import_opentelemetry(
    server: Server, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the imports of both; a traced edge imports it. redis-py tries to import the SDK, which is missing."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # every import is printed on standard error
    for settings, is_traced in (((), False), (collector.settings, True)):
        async with TmqProgram(server.url, tmp_path, *settings) as edge:
            client = await edge.client()
            assert await client.enq(await client.queue(b"q"), b"a pump")
            assert "services.kit.tracing" in edge.text()
            for name in ("opentelemetry.proto", "google.protobuf"):
                assert (name in edge.text()) is is_traced
            samples = await edge.samples()
            assert any(name.startswith("penstock_trace_spans_total") for name in samples) is is_traced


async def test_untraced_process_has_no_tracer(server: Server, collector: Collector) -> None:
    async with (
        traced_store(server.url, None) as plain,
        traced_store(server.url, collector.endpoint) as traced,
    ):
        assert plain.open_domain().pipe.tracing is None
        assert plain.trace_propagation is None
        assert traced.open_domain().pipe.tracing is not None


def test_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the error is one line that says what to install."""

    class Hidden:
        @staticmethod
        def find_spec(name: str, *_: object) -> ModuleSpec | None:
            if name.partition(".")[0] == "opentelemetry":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return None

    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])
    with pytest.raises(SettingsError, match="the extra `tracing` is not installed: install Penstock with it"):
        tracing(TracingSettings(endpoint="http://127.0.0.1:4318"), "tmq")
    assert tracing(TracingSettings(), "tmq") is None


def test_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From the environment, as all settings; secrets are not shown."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "PENSTOCK_TRACING__ENDPOINT", "https://me:secret@traces.example/otlp?key=s3cret&of=mine"
    )
    monkeypatch.setenv("PENSTOCK_TRACING__HEADERS", '{"authorization": "Bearer of-news"}')
    settings = load(flags={"tracing": {"ratio": 0.25}})
    assert settings.tracing.headers["authorization"].reveal() == "Bearer of-news"
    shown = settings.masked()["tracing"]
    assert shown["endpoint"] == "https://***@traces.example/otlp?***"
    assert shown["headers"] == {"authorization": "***"}
    assert shown["ratio"] == 0.25
    assert "of-news" not in repr(settings)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"endpoint": "collector:4318"}, "tracing.endpoint: a URL must begin with a scheme"),
        (
            {"endpoint": "http://collector:431800"},
            "tracing.endpoint: each host must be .* its port from 1 to 65535",
        ),
        (
            {"endpoint": "http://collector:0"},
            "tracing.endpoint: each host must be .* its port from 1 to 65535",
        ),
        (
            {"endpoint": "http://collector:otlp"},
            "tracing.endpoint: each host must be .* its port from 1 to 65535",
        ),
        ({"endpoint": "http://[::1:4318"}, "tracing.endpoint: each host must be .* in brackets"),
        (
            {"endpoint": "http://x/v1?key=s3 cret"},
            "tracing.endpoint: must be a URL such as http://collector:4318",
        ),
        (
            {"endpoint": "http://x:0/v1?key=s3cret"},
            "tracing.endpoint: each host must be .* its port from 1 to 65535",
        ),
        ({"ratio": 1.5}, "tracing.ratio: must be less than or equal to 1"),
        ({"batch": 10, "queue": 5}, "tracing: batch must be at most queue"),
        ({"headers": {"authorization": 5}}, "tracing.headers.authorization: must be a text"),
        (
            {"headers": {"a b": "x"}},
            "tracing.headers: a header's name must consist of letters, digits and hyphens",
        ),
        ({"headers": {"authorization": "Bearer s3cret\n"}}, "tracing.headers: the value of authorization"),
        ({"headers": {"authorization": "Bearer s\u20acret"}}, "tracing.headers: the value of authorization"),
    ],
)
def test_invalid_settings_are_refused(
    said: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=message) as refused:
        load(flags={"tracing": said})
    assert "cret" not in str(refused.value)
