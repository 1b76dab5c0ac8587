"""Run a node in a separate process, to be killed: `python -m tests.ring.users.program URL`.

It receives m0000, m0001, ... as if from a predecessor, and prints `safe` for each safe one; its successor takes
messages slowly and answers none of them.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from tests.ring.users.members import Member

AT_A_TIME = 16


async def main(url: str) -> None:
    node = await Member(url, b"victim").start()
    room = asyncio.Semaphore(AT_A_TIME)

    def safe(body: bytes) -> None:
        sys.stdout.write(f"safe {body.decode()}\n")
        sys.stdout.flush()
        room.release()

    number = 0
    while True:
        await room.acquire()
        body = b"m%04d" % number
        node.users.user_sink.received(body, lambda body=body: safe(body))  # type: ignore[misc]
        number += 1
        if number % 10 == 0:
            node.users.user_source.take(1)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
