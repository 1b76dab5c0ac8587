"""Read the contents of a store directly, without the edges."""

from __future__ import annotations

from services.store import Store, StoreError
from services.store.log.log import START, Log, LogSpec
from services.store.log.replica import Replica
from services.store.model.spec import LOG_DOMAIN
from tests.faults.text.history import Book, Entry, Numbered


class Reader:
    """A reader of one store; call `open` first."""

    def __init__(self, url: str) -> None:
        self.store = Store(url, "faults")

    async def open(self) -> None:
        await self.store.initialise()
        self._log = Log(self.store.get_domain(LOG_DOMAIN), LogSpec())
        self._replica = Replica(self._log)

    async def held(self) -> set[Numbered] | None:
        """Return the numbers that the store holds, or None while it is unavailable."""
        try:
            found = (await self._replica.state()).held
        except StoreError:
            return None
        return {
            (b"%b %b" % origin, number)
            for origin, numbers in found.items()
            for first, last in numbers.spans
            for number in range(first, last + 1)
        }

    async def book(self) -> Book:
        entries: list[Entry] = []
        place, store = START, (await self._replica.state()).store
        while found := await self._log.read(place):
            place = found[-1].place
            for entry in found:
                for number, line in enumerate(entry.block.split(b"\n")[:-1], entry.first):
                    _, tag, text = line.split(b" ", 2)
                    entries.append(Entry(entry.origin, number, tag, text))
        gaps = int((await self._log.figures()).get("gaps", 0))
        return Book(store, entries, await self.held() or set(), gaps)

    async def close(self) -> None:
        await self._log.close()
        await self.store.close()
