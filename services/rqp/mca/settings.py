"""Settings of RQP/MCA: `edges.rqp.mca` in the file (in brackets: sections of rqp_mca.md)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from protos.rqp_mca import MAX_RUN, RQP_PORT, Limits, Profile, SenderSettings
from services.kit.config import MAX_SECONDS
from services.kit.net import DialSettings
from services.rqp.rqprc import RqprcPath
from services.store.model import MCA_LARGEST_BODY, Addresses, split_address


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `host`, `host:port`, `[::1]` or `[::1]:port` (1.1). Raises ValueError."""
    host, port = split_address(text)
    return host, port or RQP_PORT


class McaPeer(BaseModel):
    """A receiving MCA, under the name that queue documents use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: Addresses = Field(
        min_length=1, description="host[:port]; each address of a name is a receiving MCA of its own"
    )
    profile: Profile = Field(default=Profile.PACKED, description="[1.2] width of its uint4")
    window: int = Field(
        default=1,
        ge=1,
        le=MAX_RUN,
        description="[3.3] most unconfirmed RELIABLE messages; more than 1 only if the peer is Penstock",
    )


class McaSettings(BaseModel):
    """Limits and timeouts of RQP/MCA, and the peers of transmission queues."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_message_bytes: int = Field(
        default=1 << 20,
        ge=1,
        le=MCA_LARGEST_BODY,
        description="[2.4] largest received body; a longer one closes the connection",
    )
    message_timeout_s: float = Field(
        default=30.0,
        gt=0,
        le=MAX_SECONDS,
        description="[1.5] how long a message may be unfinished before the connection is closed",
    )
    reservation_ttl_s: float = Field(
        default=10.0,
        ge=0.05,
        le=MAX_SECONDS,
        description="[2.3] an assignment ends after this long without a message that names its queue",
    )
    availability_timeout_s: float = Field(
        default=2.0, gt=0, le=MAX_SECONDS, description="[3.2] timeout for the answers of all peers"
    )
    request_timeout_s: float = Field(
        default=2.0, gt=0, le=MAX_SECONDS, description="[3.2] timeout for the answer of each candidate"
    )
    data_timeout_s: float = Field(
        default=10.0, gt=0, le=MAX_SECONDS, description="[3.2] timeout for the confirmation of sent messages"
    )
    first_pause_s: float = Field(
        default=1.0, gt=0, le=MAX_SECONDS, description="[3.1] pause after an error; doubles each time"
    )
    max_pause_s: float = Field(
        default=60.0, gt=0, le=MAX_SECONDS, description="[3.1] longest pause after an error"
    )
    peers: dict[str, McaPeer] = Field(
        default={}, description="receiving MCAs by name, in addition to the Peer documents in the store"
    )
    rqprc: RqprcPath | None = Field(
        default=None, description="file with one receiving MCA per line; reread when it changes"
    )
    dial: DialSettings = DialSettings()

    def limits(self) -> Limits:
        """Return the limits of the parsers."""
        return Limits(self.max_message_bytes, self.message_timeout_s)

    def sender(self) -> SenderSettings:
        """Return the timeouts of the sending agent."""
        return SenderSettings(
            self.availability_timeout_s,
            self.request_timeout_s,
            self.data_timeout_s,
            self.first_pause_s,
            self.max_pause_s,
        )
