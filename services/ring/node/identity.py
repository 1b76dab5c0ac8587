"""Who a node is, and the port that belongs to its name (ring.md 1)."""

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
    """`listener` is what was said of the port, with the number it has now."""

    name: bytes
    listener: ListenerSettings
    _holder: socket.socket | None

    @property
    def service(self) -> bytes:
        """As OPENs tell it (3.1)."""
        return b"%d" % self.listener.port

    @property
    def place(self) -> tuple[str, int]:
        """Where others connect to (1.2)."""
        return host_of(self.name).decode(), self.listener.port

    def close(self) -> None:
        """Others may have the port."""
        if self._holder is not None:
            self._holder.close()


def identify(settings: NodeSettings, listener: ListenerSettings) -> Identity:
    """Raises SettingsError if nobody could say where the node is, or the port cannot be had.

    A port that is to be any free one is chosen here, and held until `close` by a socket that does not listen: the name
    has it.
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
            [f"{ADVERTISE}: too long: {len(name)} octets with the port, at most {MAX_OWN_NAME}"]
        )
    return Identity(name.encode(), listener, holder)


def _host(settings: NodeSettings, listener: ListenerSettings) -> str:
    """What others connect to."""
    if settings.name:
        return host_of(settings.name.encode()).decode()
    return settings.advertise or _advertised(listener.host)


def _check_that_others_reach(host: str, settings: NodeSettings, listener: ListenerSettings) -> None:
    """Nodes that hear of this one connect to `host`: on another machine its loopback is that machine's own.

    That others reach a listener on loopback may still be, by a relay of this machine; then the operator knows.
    """
    wide = _of_others(settings)
    if wide is None:
        return
    if is_of_this_machine_alone(host):
        setting = "edges.ring.node.name" if settings.name else ADVERTISE
        why = f"others would look for this node at {host}, on their own machines, as {wide} is not of this one alone"
        do = "say the address or name of this machine, and listeners.ring.host: 0.0.0.0 or that address"
        raise SettingsError([f"{setting}: {why}; {do}"])
    if is_of_this_machine_alone(listener.host):
        text = (
            "others are told to connect to %s, but edges.ring.listeners.ring.host is %s: nobody reaches that"
        )
        log.warning(
            text, host, listener.host, extra={"action": "ring_listens_locally", "host": listener.host}
        )


def _of_others(settings: NodeSettings) -> str | None:
    """The first of the beacons' addresses that other machines hear, or are heard on."""
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
    """The listener's own address, if others can have it out of a node's name."""
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        why = f"listeners.ring.host {host} is no address that others could connect to"
    elif address.version == 6:
        why = f"a node's name has no room for the IPv6 address {host}: others connect to what is before its first ':'"
    else:
        return host
    raise SettingsError([f"{ADVERTISE}: missing, as {why}; say the address or name of this machine"])
