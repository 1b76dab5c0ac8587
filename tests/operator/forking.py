"""Start operators without new interpreters: a server imports their modules and forks one for each.

Each runs as `python -m penstock_operator` from there on, with its own environment, folder and log. test_early_end.py
and the tests of images start the real command.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from unittest import mock

from penstock_operator.__main__ import main

from services.system.pdeathsig import die_with_parent

ROOT = Path(__file__).parents[2]
PRELOADED = ["tests.operator.forking", "penstock_operator.run", "penstock_operator.uninstall"]


def forked(environment: Mapping[str, str], log: Path, *words: str) -> ForkServerProcess:
    """Return a process that appends its standard error to the log, and runs in the log's folder."""
    process = _server().Process(target=_be_an_operator, args=(dict(environment), log, [*words]), daemon=True)
    process.start()
    return process


@cache
def _server() -> ForkServerContext:
    """Return the fork server of this process, which stops with it."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(PRELOADED)
    with mock.patch.dict(os.environ, {"PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}"}):
        ensure_running()
    return server


def _be_an_operator(environment: Mapping[str, str], log: Path, words: list[str]) -> None:
    die_with_parent(os.getppid())
    os.setsid()
    with log.open("ab") as err:
        os.dup2(err.fileno(), 2)
    os.chdir(log.parent)
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(main(words))
