"""Run docs/examples/tutorials/program.c."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.program import ROOT

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Program:
    path: Path

    def send(self, key: int, mtype: int, *bodies: bytes) -> None:
        """Send messages, and return once the local queue has accepted them all."""
        lines = b"".join(body + b"\n" for body in bodies)
        subprocess.run(
            [self.path, "send", str(key), str(mtype)], input=lines, check=True, timeout=PATIENCE_S,
            capture_output=True,
        )  # fmt: skip

    def receive(self, key: int, number: int) -> list[tuple[bytes, int]]:
        """Return (body, mtype) of this many messages, which must arrive."""
        done = subprocess.run(
            [self.path, "receive", str(key), str(number)], check=True, timeout=PATIENCE_S, capture_output=True
        )
        return [parse_line(line) for line in done.stdout.splitlines()]

    @classmethod
    def compiled(cls, folder: Path) -> Program:
        path = folder / "program"
        source = ROOT / "docs" / "examples" / "tutorials" / "program.c"
        subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", path, source], check=True)
        return cls(path)

    def start(self, command: str, key: int, number: int, **streams: object) -> subprocess.Popen[bytes]:
        arguments = [str(self.path), command, str(key), str(number)]
        return subprocess.Popen(arguments, **streams)  # type: ignore[call-overload,no-any-return]


def parse_line(line: bytes) -> tuple[bytes, int]:
    mtype, size, body = line.split(b" ", 2)
    assert len(body) == int(size)
    return body, int(mtype)
