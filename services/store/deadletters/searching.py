"""Match patterns on bodies.

RE2 releases the interpreter lock, so its searches run in threads and do not block the process. `re` does not: its
searches run in the calling thread, where Ctrl-C can interrupt them.
"""

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

THREADS = 2  # of the process; further searches wait
SEARCH_S = 0.1  # of one step, as further searches wait for the thread

_threads = ThreadPoolExecutor(THREADS, "patterns")


async def try_on(pattern: Pattern, bodies: Sequence[bytes], search_s: float = SEARCH_S) -> list[bool]:
    """Return whether the pattern matches, for at least one body and as many more as `search_s` allows."""
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
    """Let SIGINT interrupt the search; the handler of asyncio would only cancel the task after it."""
    usual = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not callable(usual):  # SIGINT is ignored, or ends the process already
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
