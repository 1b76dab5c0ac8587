"""SIGTERM or Ctrl-C in the middle of a run: it is given up in order, and the next one need not wait for its lock.

The main thread mostly waits for Spark. Once that is stopped, by another thread, it fails there and leaves everything
as any failure does; what was begun is finished by the next run. While Spark starts there is nothing to be given up,
but neither can it be stopped yet.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the image's first process imports this before it imports Spark
    from pyspark.sql import SparkSession

PATIENCE_S = 20.0  # less than the 30 s after which pods are killed
TERMINATED = 128 + signal.SIGTERM  # as a shell says it of a process that SIGTERM has ended
INTERRUPTED = 128 + signal.SIGINT
log = logging.getLogger("services.analytics")


class Starting:
    """From now on the first SIGINT is remembered, until Spark can be told to end: else Java would stay for a while.

    A second one ends the process there and then; Java ends when it finds that nobody holds its input any more.
    """

    def __init__(self) -> None:
        self.is_asked = False
        signal.signal(signal.SIGINT, self._asked)

    def _asked(self, _number: int, _frame: object) -> None:
        if self.is_asked:
            log.warning("second signal: stopping at once", extra={"action": "terminated"})
            os._exit(INTERRUPTED)
        self.is_asked = True
        text = "interrupted: stopping once Spark has started; another signal stops the run at once"
        log.warning(text, extra={"action": "terminated"})


class Ending:
    """From now on SIGTERM and SIGINT stop Spark."""

    def __init__(self, spark: SparkSession) -> None:
        self.code = 0  # of the process, once it is to end
        # not by the session itself: the main thread still uses that
        self._context: Any = spark.sparkContext._jsc  # noqa: SLF001 - PySpark offers no other way to Java
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked)

    def _asked(self, number: int, _: object) -> None:
        if not self.code:
            self.code = 128 + number
            log.warning(
                "stopping on a signal; the next run finishes this one", extra={"action": "terminated"}
            )
            threading.Thread(target=self._stop, name="ending", daemon=True).start()

    def _stop(self) -> None:
        late = threading.Timer(PATIENCE_S, os._exit, (self.code,))
        late.daemon = True
        late.start()
        self._context.stop()
