"""The node's identity: its name, and the port that is part of it (ring.md 1)."""

from __future__ import annotations

import ipaddress
import logging
import socket
from dataclasses import dataclass

from protos.ring import host_of
from services.kit.config import SettingsError
from services.kit.net import ListenerSettings, listen_error, open_bound
from services.ring.node.hosts import is_of_others, is_of_this_machine_alone
from services.ring.node.settings import MAX_OWN_NAME, NodeSettings, parse_target

log = logging.getLogger(__name__)

ADVERTISE = "edges.ring.node.advertise"


@dataclass(frozen=True, slots=True)
class Identity:
    """The node's name and its listener, as in the settings but with the actual port."""

    name: bytes
    listener: ListenerSettings
    _holder: socket.socket | None

    @property
    def service(self) -> bytes:
        """The port as OPENs carry it (3.1)."""
        return b"%d" % self.listener.port

    @property
    def place(self) -> tuple[str, int]:
        """The host and port that others connect to (1.2)."""
        return host_of(self.name).decode(), self.listener.port

    def close(self) -> None:
        """Release the port."""
        if self._holder is not None:
            self._holder.close()


def identify(settings: NodeSettings, listener: ListenerSettings) -> Identity:
    """Choose the node's name, and its port if the settings ask for any free one.

    The port is held until `close` by a socket that does not listen, as the name includes it. Raises SettingsError if
    the settings do not say where other nodes reach this one, or the port is taken.
    """
    host = _host(settings, listener)
    _check_that_others_reach(host, settings, listener)
    holder = None
    if not listener.port:
        try:
            holder = open_bound(listener.host, 0)
        except OSError as error:
            setting = ("edges", "ring", "listeners", "ring", "port")
            raise listen_error(listener.host, 0, setting, error) from None
        listener = listener.model_copy(update={"port": holder.getsockname()[1]})
    name = settings.name or f"{host}:{listener.port}"
    if len(name) > MAX_OWN_NAME:
        if holder is not None:
            holder.close()
        raise SettingsError(
            [f"{ADVERTISE}: too long: {len(name)} octets with the port; at most {MAX_OWN_NAME}"]
        )
    return Identity(name.encode(), listener, holder)


def _host(settings: NodeSettings, listener: ListenerSettings) -> str:
    """Return the host that other nodes connect to."""
    if settings.name:
        return host_of(settings.name.encode()).decode()
    return settings.advertise or _advertised(listener.host)


def _check_that_others_reach(host: str, settings: NodeSettings, listener: ListenerSettings) -> None:
    """Refuse a loopback name that other machines would hear of: there it is their own.

    A listener on loopback is only logged: a relay of this machine may make it reachable.
    """
    wide = _of_others(settings)
    if wide is None:
        return
    if is_of_this_machine_alone(host):
        setting = "edges.ring.node.name" if settings.name else ADVERTISE
        why = f"other machines hear beacons ({wide}) and would connect to {host}, which is their own loopback address"
        do = "set it to this machine's address or name, and listeners.ring.host to 0.0.0.0 or that address"
        raise SettingsError([f"{setting}: {why}; {do}"])
    if is_of_this_machine_alone(listener.host):
        text = (
            "beacons announce %s, but edges.ring.listeners.ring.host is %s, which other machines cannot reach"
        )
        log.warning(
            text, host, listener.host, extra={"action": "ring_listens_locally", "host": listener.host}
        )


def _of_others(settings: NodeSettings) -> str | None:
    """Return the first beacon address that reaches, or is reached from, other machines."""
    targets = [parse_target(target)[0] for target in settings.beacon_targets]
    for setting, hosts in (
        ("broadcast", settings.broadcast),
        ("beacon_targets", targets),
        ("beacon_host", [settings.beacon_host]),
    ):
        for host in hosts:
            if is_of_others(host):
                return f"{setting} {host}"
    return None


def _advertised(host: str) -> str:
    """Return the listener's own address if it can be part of a node's name. Raises SettingsError."""
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        why = f"listeners.ring.host {host} is not an address that others can connect to"
    elif address.version == 6:
        why = f"a node's name cannot hold the IPv6 address {host}: others connect to the part before its first ':'"
    else:
        return host
    raise SettingsError([f"{ADVERTISE}: missing, as {why}; set it to the address or name of this machine"])
