"""A machine for a node: its own network, process and mount namespaces on the files of the host.

No packet leaves it. All its processes, mounts, interfaces and rules end with it, also when its creator is killed, so no
cleanup is needed.
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
ADDRESS = "10.99.0.1"  # address of the node
_GATEWAY = "10.99.0.2"  # unused address: a node needs a default route that accepts packets
_INTERFACE, _OTHER_END = "node", "nowhere"


class Machine:
    """A machine on the caller's network; `command` is the prefix that starts a program on it."""

    def __init__(self, name: str) -> None:
        """Start the machine's first process; `name` identifies it in a list of processes."""
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
        (self.first,) = children.read_text().split()  # its process id on the host

    @property
    def command(self) -> list[str]:
        """Return the prefix of commands on the machine; they end when the process started here is killed."""
        entered = [f"--mount=/proc/{self.first}/ns/mnt", f"--pid=/proc/{self.first}/ns/pid"]
        return ["nsenter", *entered, "setpriv", "--pdeathsig", "KILL"]

    def end(self) -> None:
        """End the machine with all its processes."""
        with self._holder:
            self._holder.kill()
        # the kernel kills the first process after its parent; it is gone once the last process inside has ended
        eventually(lambda: not Path(f"/proc/{self.first}").exists())


@contextmanager
def own_network() -> Iterator[None]:
    """Put this thread, and threads and processes that it starts, on an isolated network."""
    with own_machine():
        _ip("link", "add", _INTERFACE, "type", "veth", "peer", "name", _OTHER_END)
        _ip("addr", "add", f"{ADDRESS}/24", "dev", _INTERFACE)
        _ip("link", "set", _INTERFACE, "up")
        _ip("link", "set", _OTHER_END, "up")
        _ip("route", "add", "default", "via", _GATEWAY)
        yield


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
