"""Provide a TCP proxy to the API server that a test may interrupt, as restarting a server takes seconds."""

from __future__ import annotations

import asyncio
from threading import Thread

from tests.pubsub.cable import Cable


class Line:
    """A proxy from its own port to another, in a thread, for use in `with`."""

    def __init__(self, port: int) -> None:
        self._cable = Cable(port)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)

    def __enter__(self) -> Line:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._cable.open(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._cable.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def port(self) -> int:
        return self._cable.port

    def break_all(self) -> None:
        """Reset open connections; new ones work."""
        self._loop.call_soon_threadsafe(self._cable.break_all)

    def pull_out(self) -> None:
        """Reset new connections, too, until the line is plugged in."""
        self._loop.call_soon_threadsafe(self._cable.pull_out)

    def plug_in(self) -> None:
        self._loop.call_soon_threadsafe(self._cable.plug_in)
