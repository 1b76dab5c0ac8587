"""Settings of RQP/cast: `edges.rqp.cast` in the file (in brackets: sections of rqp_cast.md)."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from protos.rqp_cast import (
    CONNECT_TIMEOUT_S,
    FINDRECEIVER_PORT,
    PORT_REST_S,
    RECEIVER_PORTS,
    REQUEST_PORT,
    RESERVATION_S,
    SENDER_PORTS,
    ReceiverSettings,
    Result,
    SenderSettings,
    is_address,
    parse_rqprc,
)
from services.kit.config import MAX_SECONDS
from services.rqp.rqprc import RqprcPath
from services.store.model import NOT_ONE_MACHINE

MAX_WINDOW_S = 366 * 86_400.0
MAX_RECORD = (1 << 24) - 1  # octets that a record of the store can hold


def _ipv4(text: str) -> str:
    if text == "localhost":
        return "127.0.0.1"
    if not is_address(text):
        raise ValueError("must be an IPv4 address: RQP/cast knows no others")
    return text


def _ipv4_or_none(text: str) -> str:
    return _ipv4(text) if text else text


def _ports(text: str) -> str:
    ports_of(text)
    return text


def ports_of(text: str) -> range:
    """Parse '11320-11351'. Raises ValueError."""
    found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text)
    if not found or not 0 < int(found[1]) <= int(found[2]) <= 65_535:
        raise ValueError("must be first-last, as in 11320-11351")
    return range(int(found[1]), int(found[2]) + 1)


def _machine(text: str) -> str:
    found = parse_rqprc(text)
    if found.bad_lines:
        raise ValueError(found.bad_lines[0].problem)
    if len(found.hosts) != 1:
        raise ValueError("must name one machine: host or host:request_port")
    if re.match(NOT_ONE_MACHINE, found.hosts[0].name):
        raise ValueError("must be the address of one machine, not a broadcast, multicast or wildcard address")
    return text


Ipv4 = Annotated[str, AfterValidator(_ipv4)]
Ipv4OrNone = Annotated[str, AfterValidator(_ipv4_or_none)]
PortRange = Annotated[str, AfterValidator(_ports)]
Machine = Annotated[str, AfterValidator(_machine)]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]


def _shown(ports: range) -> str:
    return f"{ports[0]}-{ports[-1]}"


class PeerOptions(BaseModel):
    """Protocol options of a group of machines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    omit_address: bool = Field(default=False, description="[2.2] messages over TCP have no field `address`")
    trust_address: bool = Field(
        default=False,
        description="[2.2] identify the sender by the field `address` instead of the address that a message comes from",
    )
    duplicate_result: Literal["failure", "success"] = Field(
        default="failure", description="[5.4] answer to a message that is already stored"
    )
    decline: bool = Field(
        default=True,
        description="[3.3] decline the answers of receivers that were not chosen, by an empty connection",
    )


class CastPeer(PeerOptions):
    """A group of machines, under the name that queue documents use."""

    addresses: tuple[Machine, ...] = Field(
        min_length=1, description="host or host:request_port, as in `.rqprc`"
    )


class CastSettings(PeerOptions):
    """Settings of both agents. The protocol options here are those of machines that belong to no group."""

    receives: bool = Field(default=True, description="[5] run the receiving agent")
    sends: bool = Field(default=True, description="[4] send queues with `spec.remote` of rqp-cast")
    host: Ipv4 = Field(default="127.0.0.1", description="IPv4 address of all ports; 0.0.0.0: all")
    address: Ipv4OrNone = Field(
        default="",
        description="[2.2] content of the field `address`; '': the address that a message leaves from. Replicas that "
        "resend each other's messages must have the same, and receivers that trust it",
    )
    request_port: int = Field(
        default=REQUEST_PORT, ge=0, le=65_535, description="[1] UDP port of receiving agents; 0: any free one"
    )
    findreceiver_port: int = Field(
        default=FINDRECEIVER_PORT,
        ge=0,
        le=65_535,
        description="[1] TCP port of sending agents, the same everywhere; 0: any free one, for tests",
    )
    receiver_ports: PortRange = Field(
        default=_shown(RECEIVER_PORTS), description="[1] accept_port and data_port of sessions"
    )
    sender_ports: PortRange = Field(
        default=_shown(SENDER_PORTS), description="[1] endtransmission_port of attempts"
    )
    rqprc: RqprcPath | None = Field(
        default=None, description="[1.1] file with one machine per line; reread when it changes"
    )
    peers: dict[str, CastPeer] = Field(
        default={},
        description="[1.1] groups of machines by name, in addition to the Peer documents in the store",
    )
    t_wait1_s: Seconds = Field(default=2.0, description="[3] timeout for an answer")
    t_wait2_s: Seconds = Field(default=5.0, description="[3] timeout for ACCEPT_RECEIVER_MSG")
    t_wait3_s: Seconds = Field(default=10.0, description="[3] timeout for the whole DATA_MSG")
    t_wait4_s: Seconds = Field(default=15.0, description="[3] timeout for END_TRANSMISSION_MSG")
    connect_timeout_s: Seconds = Field(
        default=CONNECT_TIMEOUT_S,
        description="[1.2] timeout of each connection; [4.2, 5.2] of the wait after one was cut off",
    )
    port_rest_s: Seconds = Field(
        default=PORT_REST_S,
        description="[1.2] pause before the port of a session that timed out is reused for its peer and key",
    )
    reservation_s: Seconds = Field(
        default=RESERVATION_S, description="[3.2] lease on a queue, renewed by the session"
    )
    max_attempts: int = Field(
        default=20, ge=1, description="[4.2] FAILUREs before a message is dead-lettered"
    )
    first_backoff_s: Seconds = Field(
        default=1.0, description="[4.2] pause after the first FAILURE; doubles each time"
    )
    max_backoff_s: Seconds = Field(default=60.0, description="[4.2] longest pause after a FAILURE")
    dedupe_window_s: float = Field(
        default=86_400.0, gt=0, le=MAX_WINDOW_S, description="[5.4] how long received ids are remembered"
    )
    hold_margin_s: float = Field(
        default=3600.0,
        ge=0,
        le=MAX_WINDOW_S,
        description="[4.2] how long before the end of that window resending stops",
    )
    max_message_bytes: int = Field(
        default=1 << 20,
        ge=0,
        le=MAX_RECORD,
        description="[5.2] largest received message; larger ones are `injured`",
    )
    max_sessions_per_address: int = Field(
        default=8,
        ge=1,
        description="[1.2] most sessions of one machine; further questions wait. All machines share the ports",
    )
    questions_per_second: int = Field(
        default=1000, ge=1, description="[3.2] rate limit of one machine; more are dropped and counted"
    )
    dead_letter_queue: str = Field(
        default="DEAD.LETTER.Q",
        description="[5.3] queue whose dead letters get messages received for a deleted queue, if it exists",
    )

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        if self.hold_margin_s >= self.dedupe_window_s:
            raise ValueError("hold_margin_s must be less than dedupe_window_s: else nothing is ever resent")
        if len(self.receiver_range) < 2:
            raise ValueError("receiver_ports needs at least two ports: a session uses two")
        return self

    @property
    def receiver_range(self) -> range:
        """The ports of sessions."""
        return ports_of(self.receiver_ports)

    @property
    def sender_range(self) -> range:
        """The endtransmission_ports of attempts."""
        return ports_of(self.sender_ports)

    def receiver(self, options: PeerOptions) -> ReceiverSettings:
        """Return the settings of a session with a machine of these options."""
        result = Result.SUCCESS if options.duplicate_result == "success" else Result.FAILURE
        return ReceiverSettings(
            self.t_wait2_s,
            self.t_wait3_s,
            self.max_message_bytes,
            result,
            options.omit_address,
            options.trust_address,
        )

    def sender(self) -> SenderSettings:
        """Return the timeouts and bounds of the sending agent."""
        return SenderSettings(
            self.t_wait1_s,
            self.t_wait4_s,
            self.connect_timeout_s,
            self.max_attempts,
            self.first_backoff_s,
            self.max_backoff_s,
            self.dedupe_window_s,
            self.hold_margin_s,
        )
