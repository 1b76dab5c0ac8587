"""How a process is told to end.

A terminal sends its signals to every process of the group, and SIGHUP may come twice when it goes: from the kernel, and
from the shell. So SIGHUP never hurries, and a worker heeds only what its supervisor sends: SIGTERM and HURRY.
"""

from __future__ import annotations

import asyncio
import signal

from services.kit.startup_sigterm import stop_signals

HURRY = signal.SIGUSR1  # to a worker: end now


class Stop:
    """`drain`: end in order. `hurry`: end now. Made inside the loop that waits for them."""

    def __init__(self) -> None:
        self.drain = asyncio.Event()
        self.hurry = asyncio.Event()

    def listen(self) -> None:
        """Handle signals as a process on its own: the first drains, a second one that is not SIGHUP hurries.

        A child of a supervisor, which has blocked them so that none is lost, drains at SIGTERM, however often it comes,
        and hurries at HURRY; those of a terminal stay blocked.
        """
        loop = asyncio.get_running_loop()
        if signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
            loop.add_signal_handler(signal.SIGTERM, self.drain.set)
            loop.add_signal_handler(HURRY, self._now)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, HURRY, signal.SIGCHLD))
            return
        for signum in stop_signals():
            loop.add_signal_handler(signum, self.drain.set if signum == signal.SIGHUP else self._asked)

    def _asked(self) -> None:
        if self.drain.is_set():
            self.hurry.set()
        self.drain.set()

    def _now(self) -> None:
        self.drain.set()
        self.hurry.set()
