"""Build the programs of a group that are missing from the cache, with one `go build` for each module."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from tools.cache import Kept, keep, not_there
from tools.go import find_go, run_go
from tools.kubernetes.programs import ENVTEST, GROUPS, Module, Program

Say = Callable[[str], None]


def build(group: str, say: Say) -> None:
    """Build the missing programs of the group. say: receives a line for each step. Raises NotBuilt."""
    wanted = [program for program in GROUPS[group] if not _is_given(program)]
    for _, programs in groupby(wanted, key=lambda program: program.module.name):
        _build_together(list(programs), say)


def _build_together(programs: Sequence[Program], say: Say) -> None:
    """Build programs of one module."""
    wanted = [program.kept for program in programs]
    if not_there(wanted):
        go = find_go(programs[0].module.folder)
        keep(wanted, partial(_build, go, programs, say))


def _is_given(program: Program) -> bool:
    return program.kept.name in ENVTEST and bool(os.environ.get("KUBEBUILDER_ASSETS"))


def _build(go: str, programs: Sequence[Program], say: Say, place: Path, missing: Sequence[Kept]) -> None:
    module = programs[0].module
    packages = [program.package for program in programs if program.kept in missing]
    names = ", ".join(map(str, missing))
    say(f"building {names}; the first time it takes minutes")
    begin = time.monotonic()
    # -trimpath: the output does not depend on the paths of the modules and the cache
    words = ["build", "-trimpath", "-buildvcs=false", "-ldflags", _linker_flags(module), "-o", f"{place}/"]
    run_go(go, [*words, *packages], module.folder)
    for kept in missing:
        program = (place / kept.entry).rename(place / f"{kept.entry}.built")
        (place / kept.folder).mkdir()
        program.rename(place / kept.folder / kept.entry)
    say(f"built {names} in {time.monotonic() - begin:.0f} s")


def _linker_flags(module: Module) -> str:
    values = (f"-X {variable}={value}" for variable, value in module.values.items())
    return " ".join(["-s -w", *values])
