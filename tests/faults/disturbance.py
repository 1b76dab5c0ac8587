"""Carry out episodes of faults on processes and cables, and record them."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from redis.exceptions import ResponseError

from tests.faults.episodes import Episode, Kind, Scene, Step, episodes
from tests.faults.process import EdgeProcess
from tests.faults.waiting import eventually, together
from tests.servers import Server

TERM_S = 20.0  # longest drain of an edge
CALM_S = 1.0  # longest pause between two episodes


@runtime_checkable
class Line(Protocol):
    """A network connection, as of tests.pubsub.cable.Cable or tests.machines.Machine."""

    def break_all(self) -> None: ...

    def pull_out(self) -> None: ...

    def plug_in(self) -> None: ...

    def pinch(self) -> None: ...

    def release(self) -> None: ...


Target = Server | EdgeProcess | Line


@dataclass(slots=True)
class Fault:
    """One fault of a process or a cable. Times are in seconds of the run's clock."""

    target: str
    kind: str
    began: float
    ended: float | None = None  # None: not yet
    resumed: float | None = None  # when all edges served again; None: not yet


class Disturbance:
    """Inject the planned episodes; `faults` records those so far."""

    def __init__(
        self,
        seed: int,
        scene: Scene,
        targets: Mapping[str, Target],
        resumed: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Plan the episodes; `resumed` waits until everything serves again, or raises Stuck."""
        self.faults: list[Fault] = []
        self._rng = random.Random(f"{seed} the run itself")
        self._plan = episodes(seed, scene)
        self._targets = targets
        self._resumed = resumed
        self._clock = clock

    @property
    def kills(self) -> int:
        return sum(fault.kind == Kind.KILL.value for fault in self.faults)

    async def go_on(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Run episodes for `seconds`, or until `is_over`. Raise Stuck if the system does not recover."""
        end = time.monotonic() + seconds
        while not is_over() and time.monotonic() < end:
            await asyncio.sleep(self._rng.uniform(0, CALM_S))
            await self.episode(next(self._plan))

    async def episode(self, episode: Episode) -> None:
        """Run one episode, planned or made up by the run. Raise Stuck if the system does not recover."""
        first = len(self.faults)
        targets = dict.fromkeys(step.target for step in episode)
        lanes = [[step for step in episode if step.target == target] for target in targets]
        await together(*(self._lane(lane) for lane in lanes))
        await self._resumed()
        now = self._clock()
        for fault in self.faults[first:]:
            fault.resumed = now

    async def _lane(self, steps: list[Step]) -> None:
        for step in steps:
            await asyncio.sleep(step.after_s)
            fault = Fault(step.target, step.kind.value, self._clock())
            self.faults.append(fault)
            await do(step, self._targets[step.target])
            fault.ended = self._clock()


async def do(step: Step, target: Target) -> None:
    """Apply one step to its target. Raise Stuck if an edge does not end after SIGTERM."""
    match step.kind, target:
        case Kind.KILL, Server() | EdgeProcess():
            target.kill9()
            await asyncio.sleep(step.lasts_s)
            target.spawn()
        case Kind.STOP, Server() | EdgeProcess():
            target.stop()
            await asyncio.sleep(step.lasts_s)
            target.cont()
        case Kind.TERM, EdgeProcess():
            target.terminate()
            await eventually(lambda: _ended(target), TERM_S, f"{target.name} ends after SIGTERM")
            await asyncio.sleep(step.lasts_s)
            target.spawn()
        case Kind.REWRITE, Server():
            with contextlib.suppress(ResponseError):  # a rewrite is already running
                target.call("BGREWRITEAOF")
        case Kind.BREAK, Line():
            target.break_all()
        case Kind.PULL, Line():
            target.pull_out()
            await asyncio.sleep(step.lasts_s)
            target.plug_in()
        case Kind.PINCH, Line():
            target.pinch()
            await asyncio.sleep(step.lasts_s)
            target.release()
        case _:
            raise AssertionError(step)


async def _ended(edge: EdgeProcess) -> bool:
    return edge.has_ended
