"""A node killed by SIGKILL: safe messages go on, in order (ring.md 2.2, 4.5)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.live import until
from tests.ring.users.members import Ring, Start
from tests.servers import Server

HERE = Path(__file__).parents[3]
ANSWERED = 57  # messages before the kill


async def test_answered_messages_survive_kill_9(start: Start, server: Server) -> None:
    """Check that the restarted node sends every safe message in the old order after kill -9."""
    command = [sys.executable, "-P", "-m", "tests.ring.users.program", server.url]
    with subprocess.Popen(  # noqa: ASYNC220 - the test waits for its output, and nothing else runs
        command, cwd=HERE, env={"PYTHONPATH": str(HERE)}, stdout=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdout is not None
        safe = [victim.stdout.readline().split()[1] for _ in range(ANSWERED)]
        victim.kill()
        safe += [
            line.split()[1] for line in victim.stdout.read().splitlines() if len(line) == len("safe m0000")
        ]
    again, other = await start(server, b"victim"), await start(server, b"other")
    ring = Ring([again, other])
    ring.links[0].keeps = True
    await until(lambda: len(ring.links[0].carried) >= len(safe))
    carried = list(dict.fromkeys(body.decode() for body in ring.links[0].carried if len(body) == 5))
    assert safe == [f"m{n:04d}" for n in range(len(safe))]
    assert carried[: len(safe)] == safe
    await ring.settle_down()
