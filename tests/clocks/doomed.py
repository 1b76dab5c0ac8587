"""Edges that hold something of each protocol, and are killed.

    python -m tests.clocks.doomed STORE-URL FOLDER NUMBER

It says `held` on a line of its own, and goes on until it is killed. Other processes of this machine take it for one
elsewhere, of which they cannot see that it has died.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

from services.store import process_name
from tests.clocks.held import KILLED, LEASES, all_held
from tests.pairs.world import world
from tests.servers import Server


async def main(url: str, folder: Path, number: int) -> None:
    process_name.BOOT_ID = folder / "boot_id"
    process_name.BOOT_ID.write_text("of another machine")
    async with world(Server("valkey", folder, port=int(url.rpartition(":")[2])), **LEASES) as place:
        for held in all_held(KILLED, place, number).values():
            await held.begin()
        print("held", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
