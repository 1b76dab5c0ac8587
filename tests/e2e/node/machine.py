"""A machine for a node: a network, processes and mounts of its own, on the files of this one.

No packet leaves it. However it ends, also when whoever made it is killed, all its processes, mounts, interfaces and
rules end with it: nothing has to be found and undone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from services.system.pdeathsig import die_with_parent
from tests.servers import eventually
from tests.sysv.namespace import own_machine

INIT = Path(__file__).parent / "init.py"
ADDRESS = "10.99.0.1"  # the node's
_GATEWAY = "10.99.0.2"  # nobody's: a node wants a default route, and to see packets go there
_INTERFACE, _OTHER_END = "node", "nowhere"


class Machine:
    """`command` says how to start a program on it. The caller is on its network already."""

    def __init__(self, name: str) -> None:
        """name: for those who look at a list of processes."""
        alone = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc"]
        self._holder = subprocess.Popen(
            [*alone, "--kill-child=KILL", sys.executable, "-I", str(INIT), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=partial(die_with_parent, os.getpid()),
            start_new_session=True,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n", "the machine's first process did not get ready"
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        (self.first,) = children.read_text().split()  # as a process of ours

    @property
    def command(self) -> list[str]:
        """Words before a command: it runs on the machine, and ends when what was started here is killed."""
        entered = [f"--mount=/proc/{self.first}/ns/mnt", f"--pid=/proc/{self.first}/ns/pid"]
        return ["nsenter", *entered, "setpriv", "--pdeathsig", "KILL"]

    def end(self) -> None:
        """With every process on it."""
        with self._holder:
            self._holder.kill()
        # its parent has gone, the kernel kills it, and it is over once the last one inside is
        eventually(lambda: not Path(f"/proc/{self.first}").exists())


@contextmanager
def own_network() -> Iterator[None]:
    """For this thread, and for threads and processes that it starts."""
    with own_machine():
        _ip("link", "add", _INTERFACE, "type", "veth", "peer", "name", _OTHER_END)
        _ip("addr", "add", f"{ADDRESS}/24", "dev", _INTERFACE)
        _ip("link", "set", _INTERFACE, "up")
        _ip("link", "set", _OTHER_END, "up")
        _ip("route", "add", "default", "via", _GATEWAY)
        yield


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
