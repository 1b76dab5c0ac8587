"""Stop a process by signals.

A terminal signals every process of its group, and SIGHUP may come twice when it closes: from the kernel and from the
shell. So SIGHUP never hurries, and a worker handles only the signals of its supervisor: SIGTERM and HURRY.
"""

from __future__ import annotations

import asyncio
import signal

from services.kit.startup_sigterm import stop_signals

HURRY = signal.SIGUSR1  # to a worker: stop at once


class Stop:
    """Events set by signals: `drain` to stop in order, `hurry` to stop at once. Made in a running loop."""

    def __init__(self) -> None:
        self.drain = asyncio.Event()
        self.hurry = asyncio.Event()

    def listen(self) -> None:
        """Handle signals: the first one drains, a second one that is not SIGHUP hurries.

        A child of a supervisor drains at SIGTERM, however often it comes, and hurries at HURRY. Its supervisor has
        blocked all signals so that none is lost; those of a terminal stay blocked.
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
