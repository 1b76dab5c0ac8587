"""Run an image by podman as in a cluster: one unprivileged user, and only /tmp writable."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from services.system.pdeathsig import die_with_parent
from tests.images.owner import PODMAN, owner
from tests.servers import eventually

END_S = 60.0
STARTING_S = (0.0, 0.1, 0.2, 0.4)  # Python imports for some tenths of a second
NAMELESS = ("--user=123456:123456", "--passwd=false")  # flags for a user id that the image does not know
LONGEST_S = 300  # a container ends after this time even if its test was killed
CONFINED = (
    "--read-only",
    "--read-only-tmpfs=false",
    "--tmpfs=/tmp:rw,noexec,nosuid,size=64m",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--ulimit=nofile=10000:10000",
    "--ulimit=nproc=10000:10000",
    "--pull=never",
    "--network=host",
    "--rm",
)


class Container:
    """A container that runs within `with`, on this machine's network, with its output in a file."""

    def __init__(
        self,
        image: str,
        folder: Path,
        *args: str,
        environment: Mapping[str, str] | None = None,
        files: Mapping[str, Path] | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        """Prepare a container. `files` maps names in the container, read-only there, to files of this machine.

        `flags` are further flags of podman; one for a folder that all containers have replaces the default.
        """
        self.name = f"penstock-test-{secrets.token_hex(4)}"
        self._log = folder / f"{self.name}.log"
        passed = _passed_in(environment, files)
        named = [f"--name={self.name}", f"--label={owner().label}", f"--timeout={LONGEST_S}"]
        own = {flag.partition(":")[0] for flag in flags}
        confined = [*(word for word in CONFINED if word.partition(":")[0] not in own), *flags]
        self._command = [*PODMAN, "run", *confined, *named, *passed, image, *args]

    def __enter__(self) -> Container:
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=partial(die_with_parent, os.getpid()),
                start_new_session=True,
            )
        eventually(lambda: self.process.poll() is not None or self._runs)
        assert self.process.poll() is None, self.log()
        return self

    def __exit__(self, *_: object) -> None:
        podman("rm", "--force", "--time=0", "--ignore", self.name)
        self.process.wait(END_S)

    @property
    def _runs(self) -> bool:
        return bool(podman("ps", "--quiet", "--filter", f"name={self.name}", "--filter", "status=running"))

    def log(self) -> str:
        return self._log.read_text("utf-8", "replace")

    def events(self, action: str) -> list[dict[str, Any]]:
        """Return the lines of its JSON log with this action."""
        lines = [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("action") == action]

    def run(self, *command: str) -> str:
        """Run a command in the container, and return its output. Raises AssertionError."""
        return podman("exec", self.name, *command)

    def wait(self, patience_s: float) -> int:
        """Wait for the container to end on its own, and return the exit status. Raises TimeoutExpired."""
        return self.process.wait(patience_s)

    def terminate(self) -> int:
        """Stop the container as `podman stop` does, with the image's signal; return the exit status."""
        podman("stop", f"--time={END_S:.0f}", self.name)
        return self.process.wait(END_S)


def podman(*words: str) -> str:
    """Run podman, and return its output. Raises AssertionError."""
    done = subprocess.run(
        [*PODMAN, *words],
        capture_output=True,
        text=True,
        timeout=END_S + 30,
        preexec_fn=partial(die_with_parent, os.getpid()),
    )
    assert done.returncode == 0, f"podman {words[0]} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def once(image: str, command: Sequence[str], *options: str, **environment: str) -> str:
    """Run another program in an image, and return its output; options are podman's. Raises AssertionError."""
    passed = [f"--env={name}={value}" for name, value in environment.items()]
    named = [f"--label={owner().label}", f"--timeout={LONGEST_S}", f"--entrypoint={command[0]}"]
    return podman("run", *CONFINED, *named, *passed, *options, image, *command[1:])


@contextmanager
def started(
    image: str, *args: str, environment: Mapping[str, str], files: Mapping[str, Path] | None = None
) -> Iterator[str]:
    """Yield the name of a container whose first process has just started to run Penstock.

    The container stays until the end of the block. The kernel keeps earlier signals from the process (docs/images.md).
    """
    name = f"penstock-test-{secrets.token_hex(4)}"
    kept = [word for word in CONFINED if word != "--rm"]
    named = [f"--name={name}", f"--label={owner().label}", f"--timeout={LONGEST_S}"]
    podman("run", "--detach", *kept, *named, *_passed_in(environment, files), image, *args)
    try:
        process = Path("/proc", podman("inspect", "--format", "{{.State.Pid}}", name).strip())
        eventually(lambda: _handles_sigterm(process))
        yield name
    finally:
        podman("rm", "--force", "--time=0", "--ignore", name)


def _handles_sigterm(process: Path) -> bool:
    """Return whether a process has installed a handler for SIGTERM. Raises OSError if it has ended."""
    # before Python starts, the process is runc, which handles all signals
    is_python = (process / "exe").readlink().name.startswith("python")
    caught = re.search(r"^SigCgt:\s*(\w+)$", (process / "status").read_text(), re.MULTILINE)
    return is_python and caught is not None and bool(int(caught[1], 16) >> (signal.SIGTERM - 1) & 1)


def stopped(name: str, after_s: float) -> int:
    """Stop a container this long after its start, while it is starting; return its exit status.

    The first process of a container gets no signal without a handler: it would be killed 10 s later, with 137.
    """
    time.sleep(after_s)
    podman("stop", "--time=10", name)
    return int(podman("inspect", "--format", "{{.State.ExitCode}}", name))


def _passed_in(environment: Mapping[str, str] | None, files: Mapping[str, Path] | None) -> list[str]:
    passed = [f"--env={name}={value}" for name, value in (environment or {}).items()]
    return [*passed, *(f"--volume={path}:{name}:ro" for name, path in (files or {}).items())]


def inspect(image: str) -> dict[str, Any]:
    (found,) = json.loads(podman("image", "inspect", image))
    return dict(found)
