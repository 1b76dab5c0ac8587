"""python init.py NAME: the first process of a machine: gives it files of its own, then waits for orphans.

It runs where no module of ours is looked for, in namespaces of its own for processes and mounts. When it is killed the
kernel ends all other processes in them, and with the last one the mounts go.
"""

import os
import signal
import subprocess
from pathlib import Path

# what the programs of a node write to wherever they are told to work
OWN_FOLDERS = ("/run", "/var/lib", "/var/log")
# the kubelet sets these, for the whole machine; what it finds as it wants it, it leaves alone
WANTED_BY_KUBELET = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def prepare() -> None:
    for folder in OWN_FOLDERS:
        mount("-t", "tmpfs", "-o", "mode=755", "own", folder)
    for number, (name, value) in enumerate(WANTED_BY_KUBELET.items()):
        shown = Path(f"/run/sysctl-{number}")
        shown.write_text(f"{value}\n")
        mount("--bind", str(shown), f"/proc/sys/{name}")


def reap() -> None:
    """Shims and what they leave behind come to the first process when their parents end."""
    while True:
        signal.sigwait({signal.SIGCHLD})
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    prepare()
    print("ready", flush=True)
    reap()
