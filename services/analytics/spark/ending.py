"""Stop a run on SIGTERM or Ctrl-C in order, so that Spark and its Python workers end with it.

The main thread mostly waits for Spark. When another thread stops Spark, the main thread fails there and cleans up as
after any failure; the next run finishes the work. While Spark starts, there is no work to stop, but Spark cannot be
stopped yet either.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the image's first process imports this module without Spark
    from pyspark.sql import SparkSession

PATIENCE_S = 20.0  # less than the 30 s after which pods are killed
TERMINATED = 128 + signal.SIGTERM  # the exit code in a shell after SIGTERM
INTERRUPTED = 128 + signal.SIGINT
log = logging.getLogger("services.analytics")


class Starting:
    """End on SIGINT; while Spark starts, remember it until Spark can be stopped, as Java would keep running otherwise.

    A second SIGINT ends the process at once; Java ends when its input closes.
    """

    def __init__(self) -> None:
        self.is_starting = False  # Spark
        self.is_asked = False
        signal.signal(signal.SIGINT, self._asked)

    def _asked(self, _number: int, _frame: object) -> None:
        if self.is_asked:
            log.warning("second signal: stopping at once", extra={"action": "terminated"})
            os._exit(INTERRUPTED)
        if not self.is_starting:
            raise KeyboardInterrupt
        self.is_asked = True
        text = "interrupted: stopping once Spark has started; another signal stops the run at once"
        log.warning(text, extra={"action": "terminated"})


class Ending:
    """Stop Spark on SIGTERM and SIGINT."""

    def __init__(self, spark: SparkSession) -> None:
        self.code = 0  # exit code, set by a signal
        # not the session itself, which the main thread still uses
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
