"""Settings of the node: `edges.ring.node` (numbers in brackets are sections of ring.md)."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from protos.ring import BEACON_PORT, MAX_GROUP, MAX_SENDER, MAX_USER_SENT, Times
from services.kit.config import MAX_SECONDS
from services.kit.net import BindAddress, DialSettings, Networks
from services.ring.node.hosts import literal

WORD = re.compile(r"[!-~]+")  # graphic ASCII [1.2]
LOCAL_BROADCAST, LIMITED_BROADCAST = "127.255.255.255", "255.255.255.255"
LEAST_ACK_S = 0.5  # two trips of 0.2 s over the network, and the store between them [1.4]
MAX_OWN_NAME = min(MAX_SENDER, 230)  # fits into a beacon twice, with a service name [1.2]

Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]
OptionalPort = Annotated[int, Field(ge=0, le=0xFFFF)]


def _host(text: str) -> str:
    """Check a host that others connect to; it is the part of the node's name before its first `:`."""
    if text and (":" in text or not WORD.fullmatch(text)):
        raise ValueError(
            "must be an IPv4 address or a name that others can resolve; for IPv6 use a name, as a node's name has the "
            "host before its first `:`"
        )
    address = literal(text)
    if address is not None and (
        address.is_unspecified or address.is_multicast or str(address) == LIMITED_BROADCAST
    ):
        raise ValueError(f"must be the address or name of one machine: others cannot connect to {text}")
    return text


def _name(text: str) -> str:
    if not text:
        return text
    if not WORD.fullmatch(text) or text.startswith(":"):
        raise ValueError(
            "must be graphic ASCII, host or host:suffix: others connect to the part before the first `:`"
        )
    if len(text) > MAX_OWN_NAME:
        raise ValueError(f"must have at most {MAX_OWN_NAME} octets")
    _host(text.partition(":")[0])
    return text


def _broadcast(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ValueError("must be an IPv4 broadcast address, as in 10.0.0.255") from None


def _target(text: str) -> str:
    parse_target(text)
    return text


def parse_target(text: str) -> tuple[str, int | None]:
    """Split `host`, `host:port`, `::1` or `[::1]:port`; the port is None if left out. Raises ValueError."""
    found = re.fullmatch(
        r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^:\s\[\]@/]+))(?::(?P<port>\d{1,5}))?", text
    )
    if found is None:
        try:
            return str(ipaddress.IPv6Address(text)), None
        except ValueError:
            raise ValueError("must be host or host:port, as in 10.0.0.7:8083 or [::1]:8083") from None
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 1 <= port <= 0xFFFF:
        raise ValueError("must have a port from 1 to 65535")
    return found["six"] or found["host"], port


def _ack(seconds: float) -> float:
    if seconds < LEAST_ACK_S:
        raise ValueError(
            f"must be at least {LEAST_ACK_S:g}: an `A` takes two network trips, and healthy links would break again "
            "and again"
        )
    return seconds


class NodeTimes(BaseModel):
    """Intervals and time limits of the node."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    open_s: Seconds = Field(default=30.0, description="[3.5] between two OPENs")
    open_first_s: Seconds = Field(default=1.0, description="[3.5] the same in the beginning")
    open_first_for_s: Seconds = Field(default=10.0, description="[3.5] and how long that is")
    newcomer_s: Seconds = Field(default=5.0, description="[3.5] after which a silent predecessor counts")
    alone_s: Seconds = Field(default=300.0, description="[3.5] without a predecessor: LinkBroken again")
    own_ring_s: Seconds = Field(default=60.0, description="[3.6 b] before it connects within its own ring")
    self_s: Seconds = Field(default=120.0, description="[3.6 c] before it connects to itself")
    vain_s: Seconds = Field(
        default=150.0,
        description="[3.8] that another tail was open before a ring is opened for it; more than own_ring_s + open_s",
    )
    propose_s: Seconds = Field(
        default=300.0,
        description="[4.2] a leader proposes itself again; [4.6] a predecessor that is silent for three of these is "
        "closed, so it must not be below the originals' own",
    )
    find_s: Seconds = Field(default=60.0, description="[4.3] between two FINDs")
    no_leader_s: Seconds = Field(
        default=650.0, description="[4.6] without a proposal: takes itself for its leader"
    )
    confirm_s: Seconds = Field(
        default=130.0,
        description="[4.6] for the FIND of the one that was taken for the leader; more than find_s",
    )
    vacant_s: Seconds = Field(
        default=60.0, description="[4.6] between two proposals while no leader is known"
    )
    lost_s: Seconds = Field(
        default=300.0,
        description="[4.6] without a leader: the ring is opened; more than 2 * vacant_s",
    )
    absent_s: Seconds = Field(
        default=1200.0,
        description="[4.6] for which a node is not proposed by others that was found not to be there; more than lost_s",
    )
    ack_s: Annotated[Seconds, AfterValidator(_ack)] = Field(
        default=5.0, description=f"[4.5] for an `A`; then the link is broken; {LEAST_ACK_S:g} at least"
    )
    idle_s: Seconds = Field(default=10.0, description="[2.6] of its own silence: it sends its name")
    silence_s: Seconds = Field(
        default=30.0,
        description="[2.6] of a predecessor that used to send its name: closed; more than idle_s",
    )

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        for setting, least, what, why in (
            ("silence_s", self.idle_s, "idle_s", "healthy links would break again and again"),
            (
                "vain_s",
                self.own_ring_s + self.open_s,
                "own_ring_s and open_s together",
                "rings would be opened for nodes that they are about to take in",
            ),
            (
                "confirm_s",
                self.find_s,
                "find_s",
                "healthy leaders would be dropped between two FINDs, and rings reported without a leader",
            ),
            (
                "lost_s",
                2 * self.vacant_s,
                "twice vacant_s",
                "rings would be opened before any leader was proposed",
            ),
            (
                "absent_s",
                self.lost_s,
                "lost_s",
                "dead nodes would be proposed again and again, and rings without a leader never be opened",
            ),
        ):
            if getattr(self, setting) <= least:
                raise ValueError(f"{setting} must be greater than {what}, which is {least:g}: else {why}")
        return self

    def times(self) -> Times:
        """Return the times as the protocol takes them."""
        return Times(**self.model_dump())


class NodeSettings(BaseModel):
    """The node's identity, discovery and limits. The listener is `listeners.ring`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    group: int = Field(default=1, ge=1, le=MAX_GROUP, description="[3.3] only nodes of one group make a ring")
    advertise: Annotated[str, AfterValidator(_host)] = Field(
        default="",
        description="[1.2] the address or name at which others reach this node; '': that of the listener, or the part "
        "of `name` before its first `:`",
    )
    name: Annotated[str, AfterValidator(_name)] = Field(
        default="",
        description="[1.2] unique among nodes; others connect to the part before its first `:`; '': "
        "`advertise` and the TCP port, host:port",
    )
    beacon_host: BindAddress = Field(
        default="127.0.0.1", description="[1.1] address that beacons come to and leave from; 0.0.0.0, ::: all"
    )
    beacon_port: OptionalPort = Field(
        default=BEACON_PORT,
        description="[1.1] UDP, the same on all nodes; 0: any free one, for nodes that list each other as targets",
    )
    broadcast: tuple[Annotated[str, AfterValidator(_broadcast)], ...] = Field(
        default=(LOCAL_BROADCAST,),
        description="[3] beacons are sent to and received on these: the network's broadcast address, as 10.0.0.255; "
        "the default reaches the nodes of this machine",
    )
    beacon_targets: tuple[Annotated[str, AfterValidator(_target)], ...] = Field(
        default=(), description="[3.4] host or host:port; beacons are sent to these, too"
    )
    older_open_port: OptionalPort = Field(
        default=0, description="[1.1] UDP port of OPENs of older originals, 8084; 0: none"
    )
    older_find_port: OptionalPort = Field(default=0, description="[1.1] the same of FINDs, 8085")
    allow: Networks = Field(
        default=(), description="networks that beacons may come from, and that are dialled; empty: all"
    )
    window: int = Field(
        default=1, ge=1, le=64, description="[2.2] messages unanswered at a time; 1 if originals are there"
    )
    max_payload: int = Field(
        default=MAX_USER_SENT,
        ge=1024,
        le=MAX_USER_SENT,
        description="[2.1] octets of a USER that nodes with this store begin, 518 of them for the frame of a request; "
        "8188 on every node if originals are in the ring: a larger one ends an original",
    )
    dial: DialSettings = Field(default=DialSettings(connect_timeout_s=30.0), description="[2.6]")
    times: NodeTimes = NodeTimes()
    forward_user: bool = Field(
        default=False, description="[5.5] forward messages that were put into an inbox, too"
    )
    max_laps: int = Field(
        default=3,
        ge=0,
        le=1000,
        description="[5.5] passes of a message that no node claims before its owner is asked for; a message that is "
        "late, as a node was away with it, comes to inboxes this many times more if forward_user is set; 0: no limit, "
        "it goes around for ever",
    )

    @model_validator(mode="after")
    def _check_host(self) -> Self:
        host, _, _ = self.name.partition(":")
        if self.name and self.advertise and host.lower() != self.advertise.lower():
            raise ValueError(
                f"name and advertise contradict each other: others connect to {host}, the part of the name "
                f"before its first `:`, never to {self.advertise}; leave advertise out, or let the name begin with it"
            )
        return self
