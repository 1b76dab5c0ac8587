"""Run as the first process of a machine (python init.py NAME): mount its own folders, then reap orphans.

It runs in its own process and mount namespaces, without access to modules of this tree. When it is killed, the kernel
kills all other processes in them, and the mounts end with the last one.
"""

import os
import signal
import subprocess
from pathlib import Path

# folders to which the node's programs write regardless of their settings
OWN_FOLDERS = ("/run", "/var/lib", "/var/log")
# the kubelet would set these for the whole host, unless it finds the wanted values
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
    """Reap orphans: shims and their children become children of the first process when their parents end."""
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
