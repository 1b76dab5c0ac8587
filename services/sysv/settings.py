"""Define the settings `sysv`. Numbers in brackets are sections of docs/sysv.md."""

from __future__ import annotations

import re
from collections.abc import Mapping as AnyMapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from services.kit.config import MAX_SECONDS
from services.store.model import check_name
from services.store.timeouts import StoreTimeouts

MIN_KEY, MAX_KEY = -(1 << 31), (1 << 32) - 1  # key_t has 32 bits; programs write it signed or unsigned
MAX_BODY = (1 << 24) - 1024  # octets, as the store limits a message with its attributes
_MODE = re.compile(r"0?[0-7]{3}", re.ASCII)


class Direction(StrEnum):
    """The direction of messages, as seen from Penstock."""

    IN = "in"  # from a Penstock queue to the local queue
    OUT = "out"  # from the local queue to a Penstock queue


class Format(StrEnum):
    """The format of bodies in the local queue."""

    RAW = "raw"  # the message itself
    T_MSG = "t_msg"  # a T_MSG of RQP/cast, with the key of its queue


def parse_key(value: object) -> int:
    """Parse a key into a signed number: 42, '42', '0x2a' -> 42; 0xfffffff6 -> -10."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = int(value, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("must be a whole number such as 42 or 0x2a")
    if value == 0 or not MIN_KEY <= value <= MAX_KEY:
        raise ValueError("must have 32 bits, and must not be 0, which is private to a process")
    return value - (1 << 32) if value > 0x7FFFFFFF else value


def format_key(key: int) -> str:
    """Format a key as `ipcs` does: 42 -> '0x0000002a'."""
    return f"0x{key & 0xFFFFFFFF:08x}"


def parse_mode(value: object) -> str:
    """Parse a mode: '640', '0640' -> '0640'. Numbers are rejected, because YAML reads 0640 as 416."""
    if isinstance(value, str) and _MODE.fullmatch(value):
        return f"{int(value, 8):04o}"
    raise ValueError("must be octal and in quotes, such as '0640'")


class Mapping(BaseModel):
    """A mapping between a local queue and a Penstock queue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Annotated[int, BeforeValidator(parse_key)] = Field(
        description="[1.2] key for `msgget`, as 42 or 0x2a"
    )
    queue: Annotated[str, AfterValidator(check_name)] = Field(
        description="[1.2] the Penstock queue; with `t_msg`, its dead letters get malformed T_MSGs"
    )
    direction: Direction = Field(description="[1.2] `in`: into the local queue; `out`: from it")
    format: Format = Field(default=Format.RAW, description="[3.5] format of bodies; `t_msg` only with `out`")
    create: bool = Field(default=True, description="[4.2] create the local queue if it is missing")
    mode: Annotated[str, BeforeValidator(parse_mode)] = Field(
        default="0600", description="[4.2] permissions of a local queue that is created; octal, in quotes"
    )

    @property
    def permissions(self) -> int:
        """Return the mode as a number."""
        return int(self.mode, 8)

    @model_validator(mode="after")
    def _reads_what_it_can(self) -> Self:
        if self.format is Format.T_MSG and self.direction is Direction.IN:
            raise ValueError("format t_msg is for direction out only: with direction in, use raw")
        return self


class SysvSettings(BaseModel):
    """Settings of the System V bridge, `penstock sysv`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mappings: dict[str, Mapping] = Field(default={}, description="[1.2] mappings by name")
    journal: Path = Field(
        default=Path("penstock-sysv"), description="[3.2] folder of the journals, on persistent storage"
    )
    remove_on_exit: bool = Field(
        default=False, description="[4.2] remove the local queues that it created when it ends in order"
    )
    idle_s: float = Field(
        default=0.05, gt=0, le=1, description="[2.3, 3.1] longest pause between polls of a local queue"
    )
    retry_s: float = Field(
        default=2.0, gt=0, le=MAX_SECONDS, description="[2.6, 3.4] longest pause before a retry"
    )
    request_timeout_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="after this the outcome of a request is unknown"
    )
    store: StoreTimeouts = StoreTimeouts()

    @model_validator(mode="after")
    def _share_no_local_queue(self) -> Self:
        """Reject two mappings that receive from one local queue: each would get only a part of the messages."""
        takers: dict[int, str] = {}
        for name, mapping in outbound(self.mappings):
            other = takers.setdefault(mapping.key, name)
            if other != name:
                key = format_key(mapping.key)
                raise ValueError(f"mappings {other!r} and {name!r} both receive from the local queue {key}")
        return self


def outbound(mappings: AnyMapping[str, Mapping]) -> list[tuple[str, Mapping]]:
    """Return the mappings with direction `out`."""
    return [(name, mapping) for name, mapping in mappings.items() if mapping.direction is Direction.OUT]


def inbound(mappings: AnyMapping[str, Mapping]) -> list[tuple[str, Mapping]]:
    """Return the mappings with direction `in`."""
    return [(name, mapping) for name, mapping in mappings.items() if mapping.direction is Direction.IN]
