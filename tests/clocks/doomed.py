"""Run edges that hold leases of each protocol, to be killed.

    python -m tests.clocks.doomed STORE-URL FOLDER NUMBER NEIGHBOUR...

It prints `held` and runs until it is killed. To other processes of this machine it appears
to run on another machine, so that they cannot detect its death.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

from services.store.redis import process_names as process_name
from tests.clocks.held import KILLED, LEASES, all_held
from tests.pairs.world import Neighbour, world
from tests.servers import Server


async def main(url: str, folder: Path, number: int, neighbour: Neighbour) -> None:
    process_name.BOOT_ID = folder / "boot_id"
    process_name.BOOT_ID.write_text("of another machine")
    server = Server("valkey", folder, port=int(url.rpartition(":")[2]))
    async with world(server, neighbour=neighbour, **LEASES) as place:
        for held in all_held(KILLED, place, number).values():
            await held.begin()
        print("held", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        url, folder, number, link, host, port = sys.argv[1:]
        runner.run(main(url, Path(folder), int(number), Neighbour(link, host, int(port))))
