"""Traces: what the store tells of single messages goes to a collector, by OTLP over HTTP.

`tracing(settings, name)` is what a process calls: None where no `tracing.endpoint` is set, and then nothing of
OpenTelemetry is imported. Only `otlp` knows OpenTelemetry; the store knows nothing of it, and fills a `Recorder`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from services.kit.config.layers import SettingsError
from services.kit.config.settings import TracingSettings
from services.kit.tracing.recorder import Recorder

__all__ = ["Recorder", "tracing"]

MESSAGES = "opentelemetry.proto.collector"  # is there where the extra `tracing` is installed


def tracing(
    settings: TracingSettings, name: str, count: Callable[[str, int], None] | None = None
) -> Recorder | None:
    """For a process whose name stands behind `penstock-` in `service.name`. To be started where it is to run.

    count(result, number): told of spans, and of messages that could not be traced (`measures`). Raises SettingsError
    where the extra is missing.
    """
    if not settings.is_on:
        return None
    if not is_installed():
        raise SettingsError(
            [
                "tracing.endpoint: this installation lacks the extra `tracing`: install Penstock with it, "
                "from the checkout or the wheel that it came from"
            ]
        )
    from services.kit.tracing.otlp import Collector

    return Recorder(settings, Collector(settings, name), count or _count_nothing)


def is_installed() -> bool:
    try:
        return find_spec(MESSAGES) is not None
    except ModuleNotFoundError:  # one of its parents
        return False


def _count_nothing(_result: str, _number: int) -> None:
    return None
