"""Machines on a private network of a test: network namespaces, joined by an isolated bridge.

The bridge is in a namespace of its own, which the calling thread enters. Each machine is the namespace of one idle
process. The namespaces have no names, so they are removed with their last process, however a test ends.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from services.system.pdeathsig import die_with_parent
from tests.servers import eventually
from tests.sysv.namespace import own_machine

BRIDGE, PORT = "bridge", "port"  # the machines' cables are port1, port2, ...
INTERFACE = "lan"
PREFIX = "10.83.0"
HOME = f"{PREFIX}.254"  # address of the bridge's namespace
BROADCAST = f"{PREFIX}.255"


class Machine:
    """A machine, and its cable to the bridge."""

    def __init__(self, number: int) -> None:
        """Start the machine's process. number: 1 to 253."""
        self.address = f"{PREFIX}.{number}"
        self._port = f"{PORT}{number}"
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"],
            stdin=subprocess.DEVNULL,
            preexec_fn=partial(die_with_parent, os.getpid()),
            start_new_session=True,
        )
        self._network = Path(f"/proc/{self._holder.pid}/ns/net")

    def plug_together(self) -> None:
        """Connect the machine to the bridge, from the bridge's namespace."""
        ours = Path("/proc/thread-self/ns/net").readlink()
        eventually(lambda: self._network.readlink() != ours)
        to_machine = ["peer", "name", INTERFACE, "netns", str(self._holder.pid)]
        _run("ip", "link", "add", self._port, "type", "veth", *to_machine)
        _run("ip", "link", "set", self._port, "master", BRIDGE, "up")
        self._ip("link", "set", "lo", "up")
        self._ip("addr", "add", f"{self.address}/24", "brd", BROADCAST, "dev", INTERFACE)
        self.plug_in()

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the command line that runs a command on this machine."""
        return ["nsenter", f"--net={self._network}", *words]

    # faults of the cable

    def pull_out(self) -> None:
        """Take the machine's interface down: its address and its routes are gone."""
        self._ip("link", "set", INTERFACE, "down")

    def plug_in(self) -> None:
        self._ip("link", "set", INTERFACE, "up")

    def pinch(self) -> None:
        """Take the bridge's end down: no packets pass."""
        _run("ip", "link", "set", self._port, "down")

    def release(self) -> None:
        _run("ip", "link", "set", self._port, "up")

    def break_all(self) -> None:
        """Break all connections: take the interface down, and up at once."""
        self.pull_out()
        self.plug_in()

    def end(self) -> None:
        """End the machine; its other processes must have ended."""
        self._holder.kill()
        self._holder.wait()

    def _ip(self, *words: str) -> None:
        _run(*self.command(["ip", *words]))


@contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    """Run machines, numbered from 1. In the `with` block, this thread and its processes are at HOME."""
    with own_machine():
        _run("ip", "link", "add", BRIDGE, "type", "bridge")
        _run("ip", "addr", "add", f"{HOME}/24", "brd", BROADCAST, "dev", BRIDGE)
        _run("ip", "link", "set", BRIDGE, "up")
        made: list[Machine] = []
        try:
            for number in range(1, count + 1):
                made.append(Machine(number))
                made[-1].plug_together()
            yield made
        finally:
            for machine in made:
                machine.end()


def _run(*words: str) -> None:
    subprocess.run(words, check=True)
