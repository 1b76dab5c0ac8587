"""The ports of the health pages under `penstock up`: one for each process, upwards from `health.port`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.kit.config import HealthSettings, SettingsError
from services.kit.edge import EdgeSettings
from services.kit.net import port_setting

LARGEST = 65_535
Place = tuple[str, int, str]  # host, port, and the name of the port's setting
ALL = ("0.0.0.0", "::")


def health_ports(
    health: HealthSettings, edges: Mapping[str, EdgeSettings], others: Sequence[Place]
) -> list[int]:
    """Return a port for each edge and for the console, without those of the edges' listeners and of `others`.

    Raises SettingsError if `health.port` itself is such a port, or if there are too few ports above it.
    """
    number = len(edges) + 1
    if not health.port:
        return [0] * number
    taken = _taken(health.host, edges, others)
    if health.port in taken:
        raise SettingsError(
            [f"health.port: {taken[health.port]} has port {health.port}, too: give one of them another port"]
        )
    ports = [port for port in range(health.port, LARGEST + 1) if port not in taken][:number]
    if len(ports) < number:
        raise SettingsError(
            [
                f"health.port: {number} processes need a port each from {health.port} on, and only {len(ports)} are "
                f"free up to {LARGEST}: choose a lower one"
            ]
        )
    return ports


def _taken(host: str, edges: Mapping[str, EdgeSettings], others: Sequence[Place]) -> dict[int, str]:
    """Return the TCP ports that collide with one at `host`, with the setting of each."""
    places = [
        (listener.host, listener.port, ".".join(port_setting(edge, name)))
        for edge, settings in edges.items()
        for name, listener in settings.listeners.items()
    ]
    places += others
    return {port: name for other, port, name in places if other == host or host in ALL or other in ALL}
