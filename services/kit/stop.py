"""How a process is told to end."""

from __future__ import annotations

import asyncio
import signal


class Stop:
    """`drain`: end in order. `hurry`: end now. Made inside the loop that waits for them."""

    def __init__(self) -> None:
        self.drain = asyncio.Event()
        self.hurry = asyncio.Event()

    def listen_alone(self) -> None:
        """A process on its own: the first SIGTERM or SIGINT drains, the second hurries."""
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._asked)

    def listen_as_worker(self) -> None:
        """A worker: SIGTERM drains, however often it comes, SIGQUIT hurries.

        A terminal sends Ctrl-C to the whole group, and the supervisor passes on what it gets: one wish of one
        person must not be taken for two. They were blocked since before the fork, so that none is lost.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, self.drain.set)
        loop.add_signal_handler(signal.SIGQUIT, self._now)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD))

    def _asked(self) -> None:
        if self.drain.is_set():
            self.hurry.set()
        self.drain.set()

    def _now(self) -> None:
        self.drain.set()
        self.hurry.set()
