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
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:  # the image's first process imports this module without Spark
    from pyspark.sql import SparkSession

PATIENCE_S = 20.0  # less than the 30 s after which pods are killed
TERMINATED = 128 + signal.SIGTERM  # the exit code in a shell after SIGTERM
INTERRUPTED = 128 + signal.SIGINT
log = logging.getLogger("services.analytics")


class Ending:
    """Handle SIGINT, and SIGTERM once Spark has started, within a context; after it the usual handlers are there again.

    Before Spark starts, SIGINT raises KeyboardInterrupt. While Spark starts, it is remembered until Spark can be
    stopped, as Java would keep running otherwise; a second one ends the process, and Java when its input closes.
    """

    def __init__(self) -> None:
        self.code = 0  # exit code, set by a signal
        self._is_starting = False  # Spark
        self._context: Any = None  # of Java; not the session itself, which the main thread still uses
        self._usual: dict[int, Any] = {}  # handlers

    def __enter__(self) -> Self:
        self._handle(signal.SIGINT)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._usual.items():
            signal.signal(number, handler)

    def starting(self) -> None:
        """Note that Spark starts."""
        self._is_starting = True

    def started(self, spark: SparkSession) -> None:
        """Stop this session on signals from now on. Raises KeyboardInterrupt if there was one."""
        self._context = spark.sparkContext._jsc  # noqa: SLF001 - PySpark offers no other way to Java
        for number in (signal.SIGTERM, signal.SIGINT):  # PySpark has set its own handler
            self._handle(number)
        if self.code:
            raise KeyboardInterrupt

    def _handle(self, number: int) -> None:
        before = signal.signal(number, self._asked)
        self._usual.setdefault(number, before)

    def _asked(self, number: int, _: object) -> None:
        if self._context is None and not self._is_starting:
            raise KeyboardInterrupt
        if self._context is None and self.code:
            log.warning("second signal: stopping at once", extra={"action": "terminated"})
            os._exit(self.code)
        if self.code:
            return
        self.code = 128 + number
        if self._context is None:
            text = "interrupted: stopping once Spark has started; another signal stops the run at once"
        else:
            text = "stopping on a signal; the next run finishes this one"
            threading.Thread(target=self._stop, name="ending", daemon=True).start()
        log.warning(text, extra={"action": "terminated"})

    def _stop(self) -> None:
        late = threading.Timer(PATIENCE_S, os._exit, (self.code,))
        late.daemon = True
        late.start()
        self._context.stop()
