"""Patterns on bodies, tried in threads of their own: a search may take long, and nobody else waits for it where the
pattern lets go of the interpreter meanwhile, as RE2 does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from services.store.letter import Pattern

THREADS = 2  # of a process: who comes with further patterns waits for these, and for nobody else
SEARCH_S = 0.1  # of one step, as others wait for the thread

_threads = ThreadPoolExecutor(THREADS, "patterns")


async def try_on(pattern: Pattern, bodies: Sequence[bytes], search_s: float = SEARCH_S) -> list[bool]:
    """Whether it fits each of the first ones: as many as there is time for, and one at least."""
    return await asyncio.get_running_loop().run_in_executor(_threads, _try_on, pattern, bodies, search_s)


def _try_on(pattern: Pattern, bodies: Sequence[bytes], search_s: float) -> list[bool]:
    end = time.monotonic() + search_s
    found: list[bool] = []
    for body in bodies:
        found.append(pattern.search(body) is not None)
        if time.monotonic() > end:
            break
    return found
