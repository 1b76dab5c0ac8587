"""Encode and parse beacons, one UDP datagram each (ring.md 3)."""

from __future__ import annotations

import re
import struct
from typing import assert_never

from protos.ring.messages import MAX_BEACON, MAX_GROUP, MAX_NAME, MAX_NAMES, Beacon, Find, Open
from protos.types import LocalError, PeerError

HEAD = struct.Struct(">4sH")  # type, group; then the length of each name, then the names
OPEN, FIND = b"OPEN", b"FIND"
NAME_COUNT = {OPEN: 3, FIND: 1}  # leader, node, service (3.1); leader (3.2)
WORD = re.compile(rb"[!-~]+")  # a name that can be resolved: graphic ASCII
DECIMAL = re.compile(rb"[0-9]{1,5}")


def encode_beacon(beacon: Beacon) -> bytes:
    """Encode a beacon. Raises LocalError if a name is empty or too long."""
    match beacon:
        case Open(group, leader, node, service):
            data = _encode(OPEN, group, leader, node, service)
        case Find(group, leader):
            data = _encode(FIND, group, leader)
        case _:
            assert_never(beacon)
    try:
        parse_beacon(data)
    except PeerError as error:
        raise LocalError(f"not a beacon: {error}") from None
    return data


def parse_beacon(datagram: bytes) -> Beacon:
    """Parse a datagram; raises PeerError if it is not a beacon (3.3).

    PeerError reasons: `beacon_unknown`, `beacon_truncated`, `beacon_trailing`, `beacon_too_long`, `group_zero`,
    `empty_name`, `bad_node` (nothing to connect to), `bad_service`.
    """
    kind = datagram[:4]
    if kind not in NAME_COUNT:
        raise PeerError("beacon_unknown", repr(kind))
    if len(datagram) > MAX_BEACON:
        raise PeerError("beacon_too_long")
    names = _parse_names(datagram, NAME_COUNT[kind])
    (_, group) = HEAD.unpack_from(datagram)
    if group == 0:
        raise PeerError("group_zero")
    if kind == FIND:
        return Find(group, names[0])
    leader, node, service = names
    _check_address(node, service)
    return Open(group, leader, node, service)


def host_of(node: bytes) -> bytes:
    """Return the host part of a node's name: all before the first `:` (1.2)."""
    return node.partition(b":")[0]


def _parse_names(datagram: bytes, count: int) -> list[bytes]:
    place = HEAD.size + count
    lengths = datagram[HEAD.size : place]
    total = sum(lengths)
    if len(lengths) < count or len(datagram) < place + total:
        raise PeerError("beacon_truncated")
    if len(datagram) > place + total:
        raise PeerError("beacon_trailing")
    if total > MAX_NAMES:
        raise PeerError("beacon_too_long", f"names of {total} octets")
    if not all(lengths):
        raise PeerError("empty_name")
    names = []
    for length in lengths:
        names.append(datagram[place : place + length])
        place += length
    return names


def _check_address(node: bytes, service: bytes) -> None:
    """Raise PeerError if no connection could be made there on any network."""
    if not WORD.fullmatch(host_of(node)):
        raise PeerError("bad_node", repr(node[:40]))
    if not WORD.fullmatch(service):
        raise PeerError("bad_service", repr(service[:40]))
    if service.isdigit() and not (DECIMAL.fullmatch(service) and 0 < int(service) <= 0xFFFF):
        raise PeerError("bad_service", repr(service[:40]))


def _encode(kind: bytes, group: int, *names: bytes) -> bytes:
    if not 0 < group <= MAX_GROUP:
        raise LocalError(f"a group is 1 to {MAX_GROUP}, not {group}")
    if any(len(name) > MAX_NAME for name in names):
        raise LocalError(f"a name has at most {MAX_NAME} octets")
    return HEAD.pack(kind, group) + bytes(map(len, names)) + b"".join(names)
