"""The three profiles: how a uint4 beside a uint32 is encoded (rqp_mca.md 1.2)."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from protos.rqp_mca.wire import MAX_U32, MAX_UINT4, Profile
from protos.runs import U32


@dataclass(frozen=True, slots=True)
class Layout:
    """One profile: sizes in octets, and functions that split and encode heads.

    A prefix is all of a MSG_DATA before its `body_length`. `last` is a prefix's type, or the padding of a MSG_QUEUE_T,
    which only `packed` has.
    """

    message_bytes: int  # MSG_T
    queue_bytes: int  # MSG_QUEUE_T
    prefix_bytes: int  # MSG_BODY_T without body_length and body
    encode_message: Callable[[int], bytes]  # msg_id
    encode_queue: Callable[[int, int], bytes]  # msg_id, queue_id
    encode_prefix: Callable[[int, int, int], bytes]  # msg_id, queue_id, type
    id_of: Callable[[bytes, int], int]  # of the message at this place; `packed` without its padding
    split_queue: Callable[[bytes, int], tuple[int, int]]  # queue_id, last
    split_prefix: Callable[[bytes, int], tuple[int, int]]  # the same

    @property
    def head_bytes(self) -> int:
        """Octets of a MSG_BODY_T before its body."""
        return self.prefix_bytes + U32.size


def _pack(msg_id: int, queue_id: int, last: int = 0) -> bytes:
    return (msg_id << 36 | queue_id << 4 | last).to_bytes(5, "big")


def _unpack(data: bytes, start: int) -> tuple[int, int]:
    number = int.from_bytes(data[start : start + 5], "big")
    return number >> 4 & MAX_U32, number & MAX_UINT4


def _unpadded(fields: struct.Struct) -> Callable[[bytes, int], tuple[int, int]]:
    """Return a function that splits a MSG_QUEUE_T of octets or words."""
    return lambda data, start: (fields.unpack_from(data, start)[1], 0)


def _prefixed(fields: struct.Struct) -> Callable[[bytes, int], tuple[int, int]]:
    """Return a function that splits the prefix of a MSG_BODY_T of octets or words."""
    return lambda data, start: fields.unpack_from(data, start)[1:]


def _wide(message: str, queue: str, prefix: str) -> Layout:
    """Return the layout of a profile whose fields are octets or words, given its `struct` formats."""
    alone, named, typed = struct.Struct(message), struct.Struct(queue), struct.Struct(prefix)
    return Layout(
        alone.size,
        named.size,
        typed.size,
        alone.pack,
        named.pack,
        typed.pack,
        lambda data, start: int(alone.unpack_from(data, start)[0]),
        _unpadded(named),
        _prefixed(typed),
    )


LAYOUTS = {
    Profile.PACKED: Layout(
        1,
        5,
        5,
        lambda msg_id: bytes([msg_id << 4]),
        _pack,
        _pack,
        lambda data, start: data[start] >> 4,
        _unpack,
        _unpack,
    ),
    Profile.OCTET: _wide(">B", ">BI", ">BIB"),
    Profile.WORD: _wide(">I", ">II", ">III"),
}
# The profile by the first octet of a connection (1.2).
PROFILES = {
    0x00: Profile.WORD,
    **dict.fromkeys(range(0x01, 0x07), Profile.OCTET),
    **dict.fromkeys(range(0x10, 0x70), Profile.PACKED),
}
