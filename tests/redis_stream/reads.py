"""Read one stream, whole or in a thread while the test changes the store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from services.store.catalogue.reading import BEGINNING, Page, StreamReader
from tests.redis_stream.streams import KEY


def ids(pages: Iterator[Page]) -> list[str]:
    return [entry[0].decode() for page in pages for entry in page.entries]


def everything(url: str, key: str = KEY, rows: int = 100, **how: Any) -> list[str]:
    with StreamReader(url, **how) as reading:
        return ids(reading.pages(key, BEGINNING, "999999999-0", rows))


class InThread(threading.Thread):
    """A running read: `seen` entries so far, at most a page ahead of `may_see`."""

    def __init__(self, url: str, key: str = KEY, end: str = "999999999-0", **how: Any) -> None:
        super().__init__(daemon=True)
        self._url, self._key, self._end, self._how = url, key, end, how
        self.seen: list[str] = []
        self.error: Exception | None = None
        self.go_on = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            with StreamReader(self._url, **self._how) as reading:
                for page in reading.pages(self._key, BEGINNING, self._end, 10):
                    self.seen += ids(iter([page]))
                    self.go_on.wait()
        except Exception as error:  # noqa: BLE001 -- the test looks at it
            self.error = error

    def finish(self) -> list[str]:
        self.go_on.set()
        self.join(60)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.seen
