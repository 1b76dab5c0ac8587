"""Assign the ports of the health pages under `penstock up`: one per process, upwards from `health.port`."""

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
    """Return a port for each edge and the console, apart from the ports of listeners and of `others`.

    Raises SettingsError if `health.port` itself is taken, or if too few ports are free above it.
    """
    number = len(edges) + 1
    if not health.port:
        return [0] * number
    taken = _taken(health.host, edges, others)
    if health.port in taken:
        raise SettingsError(
            [f"health.port: {taken[health.port]} also uses port {health.port}: change one of them"]
        )
    ports = [port for port in range(health.port, LARGEST + 1) if port not in taken][:number]
    if len(ports) < number:
        text = f"{number} ports are needed from {health.port} on, but only {len(ports)} are free: choose a lower port"
        raise SettingsError([f"health.port: {text}"])
    return ports


def _taken(host: str, edges: Mapping[str, EdgeSettings], others: Sequence[Place]) -> dict[int, str]:
    """Return the TCP ports that conflict with `host`, with the setting of each."""
    places = [
        (listener.host, listener.port, ".".join(port_setting(edge, name)))
        for edge, settings in edges.items()
        for name, listener in settings.listeners.items()
    ]
    places += others
    return {port: name for other, port, name in places if other == host or host in ALL or other in ALL}
