"""Clocks of a process under test: its wall clock can be stepped, and its machine suspended, while it runs."""

from __future__ import annotations

import mmap
import struct
import subprocess
from pathlib import Path

SHIM = Path(__file__).with_name("shim.c")
FILE = "PENSTOCK_TEST_CLOCKS"  # the environment variable that names the file of offsets
_OFFSETS = struct.Struct("=qq")  # of the wall clock and of the boot clock, ns
NS = 1_000_000_000


class Clocks:
    """Offsets of one process's clocks. Start the process with `environment`, then change them at any time."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "clocks"
        self._library = folder / "shim.so"
        self.path.write_bytes(_OFFSETS.pack(0, 0))
        subprocess.run(
            [
                "gcc",
                "-O2",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-shared",
                "-fPIC",
                "-o",
                self._library,
                SHIM,
                "-ldl",
            ],
            check=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that the process needs."""
        return {"LD_PRELOAD": str(self._library), FILE: str(self.path)}

    def step(self, seconds: float) -> None:
        """Step the wall clock, as NTP or the operator does."""
        change(self.path, seconds, 0)

    def suspend(self, seconds: float) -> None:
        """Advance the clocks as during a suspend of the machine, while the monotonic clock stands still."""
        change(self.path, seconds, seconds)


def change(path: Path, wall_s: float, boot_s: float) -> None:
    """Add to the offsets in the file."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), _OFFSETS.size) as shared:
        wall, boot = _OFFSETS.unpack_from(shared)
        _OFFSETS.pack_into(shared, 0, wall + round(wall_s * NS), boot + round(boot_s * NS))
