"""What `penstock sysv` runs: the kit's process, with metrics, health pages and drain, around a bridge."""

from __future__ import annotations

from pydantic import Field

from services.kit import logs
from services.kit.config import GlobalSettings
from services.kit.edge import Edge, EdgeContext, EdgeSettings
from services.kit.net import ListenerSettings
from services.kit.process import EdgeProcess, run_process
from services.sysv.bridge import Bridge, Unusable
from services.sysv.settings import SysvSettings

__all__ = ["Unusable", "run"]

NAME = "sysv"  # in metrics, logs and session ids


class Hosted(EdgeSettings):
    """The bridge's settings where the kit looks for an edge's: nobody listens."""

    listeners: dict[str, ListenerSettings] = Field(default_factory=dict)
    bridge: SysvSettings


async def start(context: EdgeContext[Hosted]) -> Bridge:
    """Raises Unusable, StoreError."""
    settings = context.settings.bridge
    store = settings.store.store(
        context.store_url, NAME, settings.request_timeout_s, context.metrics.store_observer
    )
    bridge = Bridge(settings, store, context.metrics)
    try:
        store.start_serving()
        await bridge.open()
    except BaseException:
        await bridge.close()
        raise
    bridge.start()
    return bridge


def run(settings: GlobalSettings, bridge: SysvSettings) -> int:
    """Until SIGTERM or SIGINT: 0 if it ended in order, else 1. Raises Unusable, SettingsError, StoreError."""
    logs.configure(settings.log, edge=NAME)
    hosted = Edge(NAME, Hosted, start, lambda _: [])
    return run_process(EdgeProcess(hosted, settings, Hosted(bridge=bridge)))
