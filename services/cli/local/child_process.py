"""An edge, or the console, as a child process of `penstock up`, made by fork."""

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
ASK_AGAIN_S = 0.05
ANSWER_TIMEOUT_S = 5.0
TURN_S = 0.01  # how often a process looks whether it may begin


@dataclass(slots=True)
class EdgeProcess:
    """Each process in this place has the ports of the first one, so that clients find it again."""

    name: str
    command: tuple[str, ...]  # which would do the same: `ps` shows it
    settings: GlobalSettings
    serve: Callable[[GlobalSettings], int]  # until it is told to end; begins with signals blocked
    before: ChildLog  # of what must have started
    log: ChildLog = field(default_factory=ChildLog)

    @property
    def places(self) -> dict[str, Place]:
        """Where it listens, by listener."""
        return self.log.places("listening")

    @property
    def health(self) -> Place:
        """Where its health pages are, once it has started."""
        return self.log.places("health_listening")[""]

    # In the child

    def work(self) -> int:
        """Serve in this process, which has just been forked; returns its exit status."""
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
        os.setsid()  # Ctrl-C is for `up`, which tells this process when to end
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        set_title("penstock", *self.command)
        self.log.attach()

    def _kept_settings(self) -> GlobalSettings:
        tree: Tree = {}
        for path, port in self.log.ports.items():
            tree = merge(tree, nested(path, port))
        said = {
            name: merge(getattr(self.settings, name), tree.get(name, {})) for name in ("edges", "console")
        }
        health = self.settings.health.model_copy(update=tree.get("health", {}))
        return self.settings.model_copy(update={**said, "health": health})

    # In the process that waits for it

    def await_ready(self) -> None:
        """Return when it serves. Raise Failure if it does not in time."""
        give_up = time.monotonic() + READY_TIMEOUT_S
        while (unready := self._unready()) is not None:
            if time.monotonic() > give_up:
                text = f"{self.name} is not ready after {READY_TIMEOUT_S:.0f} s: {unready}"
                raise Failure(Exit.UNAVAILABLE, "edge_not_ready", text)
            time.sleep(ASK_AGAIN_S)

    def _unready(self) -> str | None:
        """Return why it does not serve yet."""
        if not self.log.has(STARTED):
            return "it does not answer"
        page = http.client.HTTPConnection(*self.health, timeout=ANSWER_TIMEOUT_S)
        try:
            page.request("GET", "/readyz")
            answer = page.getresponse()
            said = answer.read().decode("utf-8", "replace").strip()
            return None if answer.status == 200 else said
        except (OSError, http.client.HTTPException) as error:
            return str(error)
        finally:
            page.close()
