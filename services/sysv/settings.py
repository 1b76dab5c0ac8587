"""What may be said of the bridge: `sysv` in the file (numbers in brackets are sections of docs/sysv.md)."""

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

MIN_KEY, MAX_KEY = -(1 << 31), (1 << 32) - 1  # key_t has 32 bits; programs write it with a sign or without
LARGEST_BODY = (1 << 24) - 1024  # octets; with its attributes no message of the store may have more
_MODE = re.compile(r"0?[0-7]{3}", re.ASCII)


class Direction(StrEnum):
    """Which way messages go, as Penstock sees it."""

    IN = "in"  # out of a Penstock queue, into the local one
    OUT = "out"  # out of the local queue, into a Penstock one


class Format(StrEnum):
    """What the bodies in the local queue are."""

    RAW = "raw"  # the message
    T_MSG = "t_msg"  # a T_MSG of RQP/cast, which names its queue by a key


def parse_key(value: object) -> int:
    """42, '42', '0x2a' -> 42; 0xfffffff6 -> -10, as the kernel has it."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = int(value, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("write a key as a whole number, as in 42 or 0x2a")
    if value == 0 or not MIN_KEY <= value <= MAX_KEY:
        raise ValueError("a key has 32 bits and is not 0, which no other program could find")
    return value - (1 << 32) if value > 0x7FFFFFFF else value


def format_key(key: int) -> str:
    """As `ipcs` shows it: 42 -> '0x0000002a'."""
    return f"0x{key & 0xFFFFFFFF:08x}"


def parse_mode(value: object) -> str:
    """'640', '0640' -> '0640'. No number: YAML reads 0640 as 416, and whoever writes 640 means another one."""
    if isinstance(value, str) and _MODE.fullmatch(value):
        return f"{int(value, 8):04o}"
    raise ValueError("write a mode in octal, with a 0 before it and in quotes, as in '0640'")


class Mapping(BaseModel):
    """One local queue and one Penstock queue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Annotated[int, BeforeValidator(parse_key)] = Field(description="[1.2] of `msgget`, as 42 or 0x2a")
    queue: Annotated[str, AfterValidator(check_name)] = Field(
        description="[1.2] the Penstock queue; with `t_msg` the one whose dead letters get what is no T_MSG"
    )
    direction: Direction = Field(description="[1.2] `in`: into the local queue; `out`: out of it")
    format: Format = Field(default=Format.RAW, description="[3.5] what bodies are; `t_msg` only with `out`")
    create: bool = Field(default=True, description="[4.2] make the local queue if it is missing")
    mode: Annotated[str, BeforeValidator(parse_mode)] = Field(
        default="0600", description="[4.2] permissions of a local queue that is made; octal, in quotes"
    )

    @property
    def permissions(self) -> int:
        return int(self.mode, 8)

    @model_validator(mode="after")
    def _reads_what_it_can(self) -> Self:
        if self.format is Format.T_MSG and self.direction is Direction.IN:
            raise ValueError("format t_msg is for direction out only: what goes in is the message as it is")
        return self


class SysvSettings(BaseModel):
    """The System V bridge, `penstock sysv`; numbers in brackets are sections of docs/sysv.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mappings: dict[str, Mapping] = Field(default={}, description="[1.2] by names of your own")
    journal: Path = Field(
        default=Path("penstock-sysv"), description="[3.2] folder of the journals; it must outlive the process"
    )
    remove_on_exit: bool = Field(
        default=False, description="[4.2] remove the local queues that it made when it ends in order"
    )
    idle_s: float = Field(
        default=0.05, gt=0, le=1, description="[2.3, 3.1] longest pause between looks at a local queue"
    )
    retry_s: float = Field(
        default=2.0, gt=0, le=MAX_SECONDS, description="[2.6, 3.4] longest pause after what went wrong"
    )
    request_timeout_s: float = Field(
        default=30.0, gt=0, le=MAX_SECONDS, description="after this the outcome of a request is unknown"
    )
    store: StoreTimeouts = StoreTimeouts()

    @model_validator(mode="after")
    def _share_no_local_queue(self) -> Self:
        """Two that take out of one local queue would each get a part of the messages."""
        takers: dict[int, str] = {}
        for name, mapping in outbound(self.mappings):
            other = takers.setdefault(mapping.key, name)
            if other != name:
                key = format_key(mapping.key)
                raise ValueError(f"mappings {other!r} and {name!r} both take out of the local queue {key}")
        return self


def outbound(mappings: AnyMapping[str, Mapping]) -> list[tuple[str, Mapping]]:
    return [(name, mapping) for name, mapping in mappings.items() if mapping.direction is Direction.OUT]


def inbound(mappings: AnyMapping[str, Mapping]) -> list[tuple[str, Mapping]]:
    return [(name, mapping) for name, mapping in mappings.items() if mapping.direction is Direction.IN]
