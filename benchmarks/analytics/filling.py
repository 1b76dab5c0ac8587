"""A day of dead letters and samples, put into a store as edges and its upkeep write them, many in a call."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.peers.redis import encode_command

DAY_MS = 86_400_000
TICK_MS = 10_000  # of samples
BATCH = 2000  # entries of one write to the socket
EDGES = (b"tmq", b"ring")  # a process of each
REASONS = (b"expired", b"attempts", b"rejected")
ERRORS = (b"timeout after %06d ms", b"no customer %06d in table", b"line %06d has no field")
KINDS = 40  # of failures: bodies and errors that differ only in numbers
HISTOGRAMS = tuple(b",".join(b"%d" % (at * each % 7) for at in range(16)) for each in range(1, 8))


@dataclass(frozen=True, slots=True)
class Day:
    """What is put in: letters over all queues, and samples of the same queues, evenly over the day before `end_ms`."""

    letters: int
    samples: int
    end_ms: int

    @property
    def records(self) -> int:
        return self.letters + self.samples


def template(key: bytes, fields: dict[bytes, bytes]) -> bytes:
    """An XADD whose id and values are filled in by %: each says how wide it is, as its length stands before it."""
    words = [b"XADD", key, b"%13d-*", *(word for pair in fields.items() for word in pair)]
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%s\r\n" % (len(each % _ones(each)), each) for each in words
    )


def _ones(word: bytes) -> tuple[int, ...]:
    return (1,) * word.count(b"%")


def letters(keys: list[tuple[str, str]], day: Day) -> Iterator[bytes]:
    """keys: of each queue its name and the key of its dead letters."""
    first, step = day.end_ms - DAY_MS, DAY_MS / day.letters
    made = [[_letter(key.encode(), name.encode(), kind) for kind in range(KINDS)] for name, key in keys]
    for at in range(day.letters):
        died = first + int(at * step)
        age = 1000 + at * 7919 % 100_000
        kind = at * at % KINDS
        yield made[at % len(made)][kind] % (died, died - age, died, at % 1_000_000, at % 1_000_000)


def _letter(key: bytes, queue: bytes, kind: int) -> bytes:
    fields = {
        **{b"reason": REASONS[kind % 3], b"queue": queue, b"entry": b"1-1"},
        **{b"enqueued": b"%13d", b"died": b"%13d", b"origin": b"tmq 10.0.0.%d" % kind},
        **{b"acquired": b"5", b"failed": b"5", b"first": b"0", b"last": b"0", b"error": ERRORS[kind % 3]},
        b"body": b'{"order": %%06d, "kind": "k%02d", "text": "%s"}' % (kind, b"x" * 60),
    }
    return template(key, fields)


def samples(key: str, queues: list[str], day: Day) -> Iterator[bytes]:
    """As many ticks as it takes; in each, every process tells of every queue and of itself, and the store of all."""
    edges = [_edge(key.encode(), edge) for edge in EDGES]
    looks = [
        [_queue(key.encode(), edge, queue.encode(), at) for at, queue in enumerate(queues)] for edge in EDGES
    ]
    depths = [_depth(key.encode(), queue.encode(), at) for at, queue in enumerate(queues)]
    a_tick = len(EDGES) * (len(queues) + 1) + len(queues)
    ticks = -(-day.samples // a_tick)
    left = day.samples
    for tick in range(ticks):
        at = day.end_ms - (ticks - tick) * min(TICK_MS, DAY_MS // ticks)
        told = [made % (at, tick + 1) for made in edges]
        told += [made % (at, tick + 1) for process in looks for made in process]
        told += [made % (at, *(100_000_000 + tick,) * 4) for made in depths]
        yield from told[:left]
        left -= len(told)


def _edge(key: bytes, edge: bytes) -> bytes:
    own = {
        b"v": b"1",
        b"kind": b"edge",
        b"edge": edge,
        b"process": edge + b"-1",
        b"n": b"%08d",
        b"ms": b"10000",
    }
    flow = {b"connections": b"9", b"opened": b"1", b"received_octets": b"7000", b"sent_octets": b"8000"}
    return template(key, {**own, **flow, b"refused": b"busy=2"})


def _queue(key: bytes, edge: bytes, queue: bytes, at: int) -> bytes:
    own = {
        b"v": b"1",
        b"kind": b"queue",
        b"edge": edge,
        b"process": edge + b"-1",
        b"n": b"%08d",
        b"queue": queue,
    }
    counts = {
        b"ms": b"10000",
        b"in": b"%d" % (at * 3),
        b"out": b"%d" % (at * 2),
        b"acked": b"9",
        b"returned": b"1",
    }
    more = {b"rejected": b"0", b"in_octets": b"%d" % (at * 300), b"out_octets": b"%d" % (at * 200)}
    times = {b"put": HISTOGRAMS[at % 7], b"wait": HISTOGRAMS[at % 5]}
    return template(key, {**own, **counts, **more, b"refused": (b"", b"full=3")[at % 2], **times})


def _depth(key: bytes, queue: bytes, at: int) -> bytes:
    own = {b"v": b"1", b"kind": b"depth", b"queue": queue, b"qid": b"%d" % at, b"len": b"50", b"leased": b"2"}
    grow = {b"added": b"%9d", b"delivered": b"%9d", b"acked": b"%9d", b"dead_all": b"%9d"}
    still = (b"returned", b"fenced", b"expired", b"duplicates", b"redriven", b"purged", b"dead_trimmed")
    octets = {b"bytes_in": b"5000", b"bytes_out": b"5000"}
    return template(
        key, {**own, b"oldest_ms": b"900", b"dead": b"7", **grow, **dict.fromkeys(still, b"3"), **octets}
    )


class Pipe:
    """A connection that is written to without waiting; answers are counted beside."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port))
        self._answers = 0
        self._refused = b""
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    def _listen(self) -> None:
        """Each answer is an id: `$` and its length, and the id, a line each."""
        while chunk := self._sock.recv(1 << 20):
            self._answers += chunk.count(b"$")
            if b"-E" in chunk or b"-W" in chunk or chunk[:1] == b"-":
                self._refused = self._refused or chunk

    def send(self, entries: Iterator[bytes]) -> int:
        """All of them, and the end of it. Raises OSError if the server refused one."""
        sent, batch = 0, []
        for entry in entries:
            batch.append(entry)
            if len(batch) == BATCH:
                self._sock.sendall(b"".join(batch))
                sent, batch = sent + BATCH, []
        self._sock.sendall(b"".join(batch) + encode_command("QUIT"))
        self._listening.join()
        self._sock.close()
        sent += len(batch)
        if self._answers != sent:
            raise OSError(f"of {sent} entries {self._answers} were taken: {self._refused[:200]!r}")
        return sent
