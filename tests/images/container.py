"""An image that runs as a cluster would run it, by podman: one user without rights, nothing to write to but /tmp."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from services.kit.parent import die_with_parent
from tests.images.owner import PODMAN, owner
from tests.servers import eventually

END_S = 60.0
LONGEST_S = 300  # it ends by itself then, if the test that would end it was killed
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
    """Runs within `with`; on the network of this machine, with what it says in a file."""

    def __init__(
        self,
        image: str,
        folder: Path,
        *args: str,
        environment: Mapping[str, str] | None = None,
        files: Mapping[str, Path] | None = None,
    ) -> None:
        """files: of this machine, by their names in the container, which may only read them."""
        self.name = f"penstock-test-{secrets.token_hex(4)}"
        self._log = folder / f"{self.name}.log"
        told = [f"--env={name}={value}" for name, value in (environment or {}).items()]
        told += [f"--volume={path}:{name}:ro" for name, path in (files or {}).items()]
        named = [f"--name={self.name}", f"--label={owner().label}", f"--timeout={LONGEST_S}"]
        self._command = [*PODMAN, "run", *CONFINED, *named, *told, image, *args]

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
        """Of its log, in JSON."""
        lines = [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
        return [line for line in lines if line.get("action") == action]

    def run(self, *command: str) -> str:
        """What it prints, run in there. Raises AssertionError."""
        return podman("exec", self.name, *command)

    def terminate(self) -> int:
        """As `podman stop` does, with the signal that the image names; the exit status."""
        podman("stop", f"--time={END_S:.0f}", self.name)
        return self.process.wait(END_S)


def podman(*words: str) -> str:
    """What it prints. Raises AssertionError."""
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
    """What a program other than the image's own prints in it; options are podman's. Raises AssertionError."""
    told = [f"--env={name}={value}" for name, value in environment.items()]
    named = [f"--label={owner().label}", f"--timeout={LONGEST_S}", f"--entrypoint={command[0]}"]
    return podman("run", *CONFINED, *named, *told, *options, image, *command[1:])


def inspect(image: str) -> dict[str, Any]:
    (found,) = json.loads(podman("image", "inspect", image))
    return dict(found)
