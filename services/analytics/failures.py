"""Turn errors of the job, of Spark and of Delta Lake into one sentence and an exit code."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from services.analytics.clocks import ClockWrong
from services.analytics.delta import TableError
from services.analytics.output import NoOutput, OutputError
from services.analytics.preflight import OtherStore
from services.analytics.report.output import ReportRefused
from services.analytics.settings import SettingsError
from services.redis_stream.losses import DataLoss
from services.redis_stream.options import OptionError
from services.store.model import NotInitialised, StoreError, StoreUnavailable

DONE, FAILED, USAGE, UNAVAILABLE, CONCURRENT = range(5)
TOLD = 2000  # characters of an error inside of Spark
# an error of ours in the traceback of a task
OWN = re.compile(r"^(?:.*: )?services\.[\w.]+\.\w+: (.+)$", re.MULTILINE)
CALLING = "An error occurred while calling "  # of Java, without saying which
OURS = (
    SettingsError,
    OptionError,
    OutputError,
    ClockWrong,
    OtherStore,
    DataLoss,
    StoreError,
    TableError,
    ReportRefused,
)
# parts of errors of Spark and Delta, the exit code, and what to say instead
KNOWN = (
    (
        "CONCURRENT_STREAM_LOG_UPDATE",
        CONCURRENT,
        "another run reads the same store into this output at the same time; it goes on, and this one stops. The "
        "tables are right; the next run continues",
    ),
    (
        "DELTA_CONCURRENT",
        CONCURRENT,
        "another run changed the same table at the same time; the tables are right, and the next run continues",
    ),
    (
        "Multiple streaming queries are concurrently using",
        CONCURRENT,
        "another run reads the same store into this output at the same time; it goes on, and this one stops. The "
        "tables are right; the next run continues",
    ),
    (
        "Metadata changed since last commit",  # delta-rs
        CONCURRENT,
        "another run changed the same table at the same time; the tables are right, and the next run continues",
    ),
    (
        "concurrent transaction",  # delta-rs
        CONCURRENT,
        "another run changed the same table at the same time; the tables are right, and the next run continues",
    ),
    (
        "No space left on device",
        FAILED,
        "a disk is full: free space where the output or Spark's temporary files (spark.local.dir, TMPDIR) are. The "
        "tables are as they were before the last commit; the next run continues",
    ),
    (
        "Disk quota exceeded",
        FAILED,
        "the disk quota of the output or of Spark's temporary files is used up: free space. The tables are as they "
        "were before the last commit; the next run continues",
    ),
    (
        "OutOfMemoryError",
        FAILED,
        "Java's memory was not enough: give more with --driver-memory, or fewer tasks with --master local[1]. The next "
        "run continues",
    ),
    (
        "DELTA_INVALID_PROTOCOL_VERSION",
        FAILED,
        "a table was written by a newer version of Delta Lake: run the newer version of the job, or give another "
        "--output",
    ),
    (
        "DELTA_UNSUPPORTED_FEATURES",
        FAILED,
        "a table uses features of a newer version of Delta Lake: run the newer version of the job, or give another "
        "--output",
    ),
    (
        "JAVA_GATEWAY_EXITED",
        FAILED,
        "Java did not start; see the lines above for the cause. Java 17 or newer is required (JAVA_HOME, PATH), and "
        "the machine needs the memory that --driver-memory asks for",
    ),
)


def told(error: Exception) -> tuple[int, str]:
    """Return the exit code and the sentence of an error."""
    if isinstance(error, StoreUnavailable | NotInitialised):
        return UNAVAILABLE, f"store: {error}"
    if isinstance(error, ReportRefused):
        return UNAVAILABLE, str(error)
    if isinstance(error, SettingsError | OptionError | NoOutput):
        return USAGE, str(error)
    if isinstance(error, TableError | OutputError):
        return _known(str(error)) or (FAILED, str(error))
    if isinstance(error, OURS):
        return FAILED, str(error)
    if isinstance(error, PySparkException | Py4JError):
        return _of_spark(str(error))
    return (
        FAILED,
        f"internal error: {type(error).__name__}: {error}; the next run continues where this one stopped",
    )


def is_internal(error: Exception) -> bool:
    """Return whether the error is a fault of this program, whose traceback is worth showing."""
    return not isinstance(error, (*OURS, StoreUnavailable, NotInitialised, PySparkException, Py4JError))


def _of_spark(text: str) -> tuple[int, str]:
    if own := dict.fromkeys(match[1].strip() for match in OWN.finditer(text)):
        sentences = " | ".join(own)[:TOLD]
        return _known(sentences) or (UNAVAILABLE if "StoreUnavailable" in text else FAILED, sentences)
    if found := _known(text):
        return found
    lines = [line.strip() for line in text.splitlines() if not line.startswith(CALLING)] or ["Spark failed"]
    causes = [line for line in lines[1:] if "Caused by" in line or "Error: " in line]
    return FAILED, " | ".join([lines[0].removeprefix(": "), *dict.fromkeys(causes)])[:TOLD]


def _known(text: str) -> tuple[int, str] | None:
    return next(((code, sentence) for part, code, sentence in KNOWN if part.lower() in text.lower()), None)
