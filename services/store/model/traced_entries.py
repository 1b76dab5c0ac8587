"""Pack records into entries that begin with a traced message if they contain any, so that readers need one check."""

from __future__ import annotations

from services.store.model import records, trace_context


def is_traced(record: bytes) -> bool:
    """Return whether a record carries a sampled trace context."""
    context = trace_context.of_record(record)
    return context is not None and context.is_sampled


def pack_traced(run: list[bytes]) -> list[tuple[int, int, bytes]]:
    """Pack as `records.pack` does, with each traced record first in its entry or after other traced ones.

    The first octet of an entry then says whether any of its records is traced.
    """
    entries: list[tuple[int, int, bytes]] = []
    start, before = 0, True
    for index, record in enumerate(run):
        traced = bool(record[0]) and is_traced(record)
        if traced and not before:
            entries += records.pack(run[start:index])
            start = index
        before = traced
    return entries + records.pack(run[start:])
