"""Patterns on bodies, tried in threads of their own: a search may take long, and nobody else waits for it where the
pattern lets go of the interpreter meanwhile, as RE2 does. One of `re` never does: it is tried where it is asked for,
as Ctrl-C would never come through from beside it."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from services.store.model.dead_letter import Pattern

THREADS = 2  # of a process: who comes with further patterns waits for these, and for nobody else
SEARCH_S = 0.1  # of one step, as others wait for the thread

_threads = ThreadPoolExecutor(THREADS, "patterns")


async def try_on(pattern: Pattern, bodies: Sequence[bytes], search_s: float = SEARCH_S) -> list[bool]:
    """Whether it fits each of the first ones: as many as there is time for, and one at least."""
    if isinstance(pattern, re.Pattern):
        with _ended_by_ctrl_c():
            return _try_on(pattern, bodies, search_s)
    return await asyncio.get_running_loop().run_in_executor(_threads, _try_on, pattern, bodies, search_s)


def _try_on(pattern: Pattern, bodies: Sequence[bytes], search_s: float) -> list[bool]:
    end = time.monotonic() + search_s
    found: list[bool] = []
    for body in bodies:
        found.append(pattern.search(body) is not None)
        if time.monotonic() > end:
            break
    return found


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """asyncio's handler only asks the task to end, which it hears behind the search: in years, with some patterns."""
    usual = signal.getsignal(signal.SIGINT)
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or not callable(usual):  # ignored, or the end as it is
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
