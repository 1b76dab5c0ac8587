"""Parse a line of `mca.rqprc`: as in the file of RQP/cast, but also with IPv6 addresses."""

from __future__ import annotations

from protos.rqp_cast import Host, read_host
from services.store.model import split_address


def read_machine(word: str, standard_port: int) -> Host | str:
    """Return the machine of `host`, `host:port`, `[::1]` or `[::1]:port`, or what is wrong with it.

    The name of an IPv6 address keeps its brackets.
    """
    if "[" not in word and word.count(":") < 2:
        return read_host(word, standard_port)
    try:
        host, port = split_address(word)
    except ValueError as error:
        return str(error)
    return Host(f"[{host}]", port or standard_port)
