"""Run an edge or the console as a forked child process of `penstock up`."""

from __future__ import annotations

import http.client
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from services.cli.local.child_log import STARTED, ChildLog, Place
from services.cli.terminal.exits import Exit, Failure
from services.cli.terminal.failures import failure_for
from services.kit.config import GlobalSettings, Tree, merge, nested
from services.kit.stop import HURRY
from services.system.process_title import set_title

log = logging.getLogger(__name__)

READY_TIMEOUT_S = 60.0
POLL_S = 0.05
ANSWER_TIMEOUT_S = 5.0
TURN_S = 0.01  # between checks of whether the previous process has started


@dataclass(slots=True)
class EdgeProcess:
    """A child that keeps the ports of its first process across restarts, so that clients find it again."""

    name: str
    command: tuple[str, ...]  # the equivalent command, shown by `ps`
    settings: GlobalSettings
    serve: Callable[[GlobalSettings], int]  # serves until a signal; signals are blocked at the start
    before: ChildLog  # log of the child that must start first
    log: ChildLog = field(default_factory=ChildLog)

    @property
    def places(self) -> dict[str, Place]:
        """Return the listening addresses by listener."""
        return self.log.places("listening")

    @property
    def health(self) -> Place:
        """Return the address of the health pages. Only valid once it has started."""
        return self.log.places("health_listening")[""]

    # In the child

    def work(self) -> int:
        """Serve in the freshly forked process; return the exit status."""
        try:
            self._become_service()
            while not self.before.has(STARTED):
                if signal.sigtimedwait({signal.SIGTERM, HURRY}, TURN_S) is not None:
                    return 0
            return self.serve(self._kept_settings())
        except Exception as error:
            log.debug("%s failed", self.name, exc_info=error)
            return self.log.fail(failure_for(error))

    def _become_service(self) -> None:
        os.setsid()  # Ctrl-C is for `up`, which then stops this process
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        set_title("penstock", *self.command)
        self.log.attach()

    def _kept_settings(self) -> GlobalSettings:
        tree: Tree = {}
        for path, port in self.log.ports.items():
            tree = merge(tree, nested(path, port))
        sections = {
            name: merge(getattr(self.settings, name), tree.get(name, {})) for name in ("edges", "console")
        }
        health = self.settings.health.model_copy(update=tree.get("health", {}))
        return self.settings.model_copy(update={**sections, "health": health})

    # In the parent

    def await_ready(self) -> None:
        """Wait until the child is ready. Raise Failure after READY_TIMEOUT_S."""
        give_up = time.monotonic() + READY_TIMEOUT_S
        while (unready := self._unready()) is not None:
            if time.monotonic() > give_up:
                text = f"{self.name} is not ready after {READY_TIMEOUT_S:.0f} s: {unready}"
                raise Failure(Exit.UNAVAILABLE, "edge_not_ready", text)
            time.sleep(POLL_S)

    def _unready(self) -> str | None:
        """Return why it is not ready, or None if it is."""
        if not self.log.has(STARTED):
            return "it has not started"
        page = http.client.HTTPConnection(*self.health, timeout=ANSWER_TIMEOUT_S)
        try:
            page.request("GET", "/readyz")
            answer = page.getresponse()
            text = answer.read().decode("utf-8", "replace").strip()
            return None if answer.status == 200 else text
        except (OSError, http.client.HTTPException) as error:
            return str(error)
        finally:
            page.close()
