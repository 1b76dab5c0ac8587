"""Run the TMQ edge as a process, `python -m services.tmq`, with its log and health pages."""

from __future__ import annotations

import os
from pathlib import Path

from protos.tmq import Dialect
from tests.program import ROOT
from tests.program import EdgeProgram as Program
from tests.tmq.client import Client

__all__ = ["ROOT", "EdgeProgram", "resident_bytes"]


class EdgeProgram(Program):
    edge = "tmq"
    listeners = (
        "listeners.document.port=0",
        "listeners.reference.port=0",
        "listeners.reference.dialect=reference",
    )

    async def client(self, listener: str = "document") -> Client:
        return self.adopt(await Client.connect(self.place(listener), Dialect(listener)))


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
