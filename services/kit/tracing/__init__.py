"""Export traces of messages to a collector, by OTLP over HTTP.

The store records spans in a `Recorder` and knows nothing of OpenTelemetry, which only `otlp` imports, and only if
tracing is on.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from services.kit.config.layers import SettingsError
from services.kit.config.settings import TracingSettings
from services.kit.tracing.recorder import Recorder

__all__ = ["Recorder", "tracing"]

MESSAGES = "opentelemetry.proto.collector"  # present if the extra `tracing` is installed


def tracing(
    settings: TracingSettings, name: str, count: Callable[[str, int], None] | None = None
) -> Recorder | None:
    """Return the recorder of a process, to be started by the caller; None if tracing is off.

    `service.name` is `penstock-` and the name. `count(result, number)` counts spans, and messages that were not traced
    (see `measures`). Raises SettingsError if the extra is missing.
    """
    if not settings.is_on:
        return None
    if not is_installed():
        raise SettingsError(
            [
                "tracing.endpoint: the extra `tracing` is not installed: install Penstock with it, "
                "from the checkout or the wheel that it came from"
            ]
        )
    from services.kit.tracing.otlp import Collector

    return Recorder(settings, Collector(settings, name), count or (lambda _result, _number: None))


def is_installed() -> bool:
    """Return whether the extra `tracing` is installed."""
    try:
        return find_spec(MESSAGES) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
