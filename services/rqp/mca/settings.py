"""What may be said of RQP/MCA: `edges.rqp.mca` in the file (in brackets: sections of rqp_mca.md)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from protos.rqp_mca import MAX_RUN, RQP_PORT, Limits, Profile, SenderSettings
from services.kit.config import MAX_SECONDS
from services.kit.net import DialSettings
from services.rqp.rqprc import RqprcPath
from services.store.model import MCA_LARGEST_BODY, Addresses, split_address


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `host`, `host:port`, `[::1]` or `[::1]:port` (1.1). Raises ValueError."""
    host, port = split_address(text)
    return host, port or RQP_PORT


class McaPeer(BaseModel):
    """A receiving MCA, as queue documents name it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    addresses: Addresses = Field(
        min_length=1, description="host[:port]; all addresses of a name are asked, each as one receiving MCA"
    )
    profile: Profile = Field(default=Profile.PACKED, description="[1.2] how wide its uint4 are")
    window: int = Field(
        default=1,
        ge=1,
        le=MAX_RUN,
        description="[3.3] RELIABLE messages that may be unconfirmed; more than 1 only for agents of ours",
    )


class McaSettings(BaseModel):
    """RQP/MCA: what is received, and whom transmission queues may ask."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_message_bytes: int = Field(
        default=1 << 20,
        ge=1,
        le=MCA_LARGEST_BODY,
        description="[2.4] of a body that is received; a longer one closes the connection",
    )
    message_timeout_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="[1.5] a message unfinished for so long: closed"
    )
    reservation_ttl_s: float = Field(
        default=10.0,
        ge=0.05,
        le=MAX_SECONDS,
        description="[2.3] an assignment ends after so long without a message that names its queue",
    )
    availability_timeout_s: float = Field(
        default=2.0, gt=0, le=MAX_SECONDS, description="[3.2] for the answers of all peers"
    )
    request_timeout_s: float = Field(
        default=2.0, gt=0, le=MAX_SECONDS, description="[3.2] for the answer of each candidate"
    )
    data_timeout_s: float = Field(
        default=10.0, gt=0, le=MAX_SECONDS, description="[3.2] for the confirm of what is out"
    )
    first_pause_s: float = Field(
        default=1.0, gt=0, le=MAX_SECONDS, description="[3.1] after an error; then twice as long each time"
    )
    max_pause_s: float = Field(
        default=60.0, gt=0, le=MAX_SECONDS, description="[3.1] the longest pause after an error"
    )
    peers: dict[str, McaPeer] = Field(
        default={}, description="receiving MCAs by name, beside the Peer documents in the store"
    )
    rqprc: RqprcPath | None = Field(
        default=None, description="a file with one receiving MCA on each line; read again when it changes"
    )
    dial: DialSettings = DialSettings()

    def limits(self) -> Limits:
        return Limits(self.max_message_bytes, self.message_timeout_s)

    def times(self) -> SenderSettings:
        return SenderSettings(
            self.availability_timeout_s,
            self.request_timeout_s,
            self.data_timeout_s,
            self.first_pause_s,
            self.max_pause_s,
        )
