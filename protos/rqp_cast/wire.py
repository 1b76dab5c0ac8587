"""The layout of RQP/cast on one screen: fields, numbers, ports, times (rqp_cast.md 1, 2).

An IPv4 address is text here, as sockets give it: `10.0.0.1`. None stands for one that is left out (2.2).
"""

import enum
import re
import struct
from typing import Final

from protos.types import LocalError

U32 = struct.Struct(">I")  # message_size; the reason of a GARBAGE_MSG; an address
ACCEPT_SENDER = struct.Struct(">HIH")  # accept_port, key, data_port
ACCEPT_RECEIVER = struct.Struct(">HIB")  # endtransmission_port, id, msg_type
DATA_HEAD = struct.Struct(">II")  # key, message_size
END_TRANSMISSION = struct.Struct(">IB")  # id, result
T_HEAD = struct.Struct(">BIII")  # msg_type, id, key, message_size

ADDRESS_BYTES = U32.size  # the first field of all that travels
QUESTION_BYTES = ADDRESS_BYTES + U32.size  # address, key: a datagram
MAX_U32 = (1 << 32) - 1  # keys and ids; data is shorter by the limit

ZERO_ID: Final = 0  # id and endtransmission_port of an uncertain message (2.3)

REQUEST_PORT: Final = 11312  # UDP, questions to receiving agents (1)
FINDRECEIVER_PORT: Final = 11313  # TCP, answers to sending agents (1)
RECEIVER_PORTS: Final = range(11320, 11352)  # TCP, accept_port and data_port of sessions (1)
SENDER_PORTS: Final = range(11352, 11384)  # TCP, endtransmission_port of attempts (1)

CONNECT_TIMEOUT_S: Final = 2.0  # 1.2
PORT_REST_S: Final = 60.0  # how long a port is not used again after its session timed out (1.2)
RESERVATION_S: Final = 10.0  # of a queue, renewed by the live session (3.2)
NAMES_CACHED_S: Final = 30.0  # addresses of the names in .rqprc (1.1)


class Quality(enum.IntEnum):
    """The field `msg_type`: whether a message's receipt is confirmed (2.1)."""

    LOW_QUALITY = 0  # uncertain: sent once, never confirmed
    HIGH_QUALITY = 1  # certain: kept by its sender until it is confirmed


class Result(enum.IntEnum):
    """The field `result` of END_TRANSMISSION_MSG (2.1)."""

    FAILURE = 0  # not inserted this time
    SUCCESS = 1  # inserted, durably


class Reason(enum.IntEnum):
    """Why a message is in DEAD.LETTER.Q (2.1); `label` is the store's name for it."""

    INJURED = 0  # another key than the session's, too large, or no T_MSG
    PARTIALLY_RECEIVED = 1  # the connection ended, or the time was up, before its end
    ZOMBIE = 2  # its queue went away while it was being received

    @property
    def label(self) -> str:
        """The store's name of the reason."""
        return self.name.lower()


_ADDRESS = re.compile(r"(0|[1-9]\d{0,2})" + r"\.(0|[1-9]\d{0,2})" * 3, re.ASCII)


def is_address(text: str) -> bool:
    """Return whether it is an IPv4 address as sockets write it: four decimal numbers without leading zeros."""
    found = _ADDRESS.fullmatch(text)
    return found is not None and all(int(part) <= 255 for part in found.groups())


def encode_address(address: str | None) -> bytes:
    """Encode the field `address`: 4 bytes, or none where it is left out (2.2). LocalError if it is invalid."""
    if address is None:
        return b""
    if not is_address(address):
        raise LocalError(f"not an IPv4 address: {address!r}")
    return bytes(map(int, address.split(".")))


def parse_address(field: bytes) -> str:
    """Return the text of a 4-byte address."""
    return ".".join(map(str, field))


def packed(layout: struct.Struct, *fields: int) -> bytes:
    """Pack fields. Raises LocalError if one does not fit."""
    try:
        return layout.pack(*fields)
    except struct.error as error:
        raise LocalError(f"does not fit into the field: {error}") from None
