"""Define and check the settings of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from services.analytics.cleaning.fingerprint import FINGERPRINTED
from services.analytics.cleaning.redaction import trouble
from services.outside.url import BadUrl
from services.store.redis import StoreUrl, check_files

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
LATEST = "latest"  # name of the newest report in the output
# with the number of failures a task may have, and white space where Spark allows it
LOCAL = re.compile(r"local(\[([1-9]\d*|\*)(\s*,\s*[1-9]\d*)?\])?", re.ASCII)
MASTER = re.compile(rf"{LOCAL.pattern}|local-cluster\[[\d, ]+\]|(spark|k8s)://\S+|yarn", re.ASCII)
MEMORY = re.compile(r"([0-9]{1,15})([kmgt]?)")  # as Java's -Xmx has it
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
LEAST_MEMORY = 450 << 20  # Spark does not start with less
CONF = re.compile(r"spark\.[^=\s]+=.*", re.DOTALL)
MOST_DAYS = 36_500  # a century, which keeps all dates within the calendar
MOST_DIGITS = 9  # of a number of octets; a value in Redis has at most 512 MiB
BODIES = re.compile(rf"none|full|[0-9]{{1,{MOST_DIGITS}}}")
BOUNDS: dict[str, tuple[float, float]] = {  # least and greatest values
    "retention_days": (0, MOST_DAYS),
    "week_days": (1, MOST_DAYS),
    "top": (1, 1_000_000),
    "report_hours": (1, 168),
    "clock_slack_s": (0, 86_400 * MOST_DAYS),
    "patience_s": (0.1, 86_400),
    "maintenance_s": (1, 86_400),
    "continuous_s": (0, 86_400),
}


class SettingsError(ValueError):
    """A setting is invalid; the text says what to write."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a run."""

    store: str = field(repr=False)  # may contain a password
    output: str
    run: str
    bodies: str = "none"  # none, full, or the octets of each body to keep
    redact: tuple[str, ...] = ()  # RE2 patterns; matches are not kept
    retention_days: int = 0  # older data is removed; 0: never
    week_days: int = 7  # history that changes are compared with
    top: int = 50  # rows of a queue and hour in origins and failures
    objective: float = 0.999  # share of puts to be accepted; the rest is the error budget
    report_hours: int = 24  # hours that a report covers
    clock_slack_s: int = 3600  # how far a record's time may be ahead of the store's clock
    fail_on_loss: bool = True
    accept_clock: bool = False  # trust the store's clock
    accept_store: bool = False  # accept another store than before
    recompute: bool = False  # compute the gold tables of all hours
    master: str = ""  # '': that of spark-submit, otherwise local[*]
    driver_memory: str = "1g"  # what does not fit is spilled to the disk
    conf: tuple[str, ...] = ()  # additional Spark settings, NAME=VALUE each
    patience_s: float = 30.0  # how long an unavailable store is retried
    maintenance_s: float = 120.0  # after which OPTIMIZE, and VACUUM, begin no further step
    continuous_s: float = 0.0  # seconds from one run to the next; 0: one run

    def __post_init__(self) -> None:
        """Check all values. Raises SettingsError."""
        for name, (least, most) in BOUNDS.items():
            if not least <= getattr(self, name) <= most:  # also false for NaN
                raise SettingsError(f"{name} {getattr(self, name)}: use a number from {least} to {most}")
        self._check_run()
        self._check_places()
        self._check_content()
        check_spark(self.master, self.driver_memory, self.conf)

    def _check_run(self) -> None:
        if not RUN.fullmatch(self.run):
            raise SettingsError(
                f"run id {self.run!r}: use up to 100 letters, digits, '.', '_' and '-', starting with a letter or digit"
            )
        if self.run == LATEST:
            raise SettingsError(f"run id {LATEST!r}: the name is that of the newest report; use another name")

    def _check_places(self) -> None:
        try:
            check_files(StoreUrl.parse(self.store))
        except BadUrl as error:
            raise SettingsError(f"store: {error}") from None
        if not self.output:
            raise SettingsError("output is empty: give a folder, or s3a://bucket/path")

    def _check_content(self) -> None:
        if not BODIES.fullmatch(self.bodies):
            raise SettingsError(
                f"bodies {self.bodies!r}: use none, full, or a number of octets of at most {MOST_DIGITS} digits"
            )
        for pattern in self.redact:
            if why := trouble(pattern):
                raise SettingsError(f"redact {pattern!r}: {why}; use the syntax of RE2")
        if not 0 < self.objective < 1:
            raise SettingsError(
                f"objective {self.objective}: use a number above 0 and below 1, such as 0.999"
            )

    def read_bodies(self) -> str:
        """Return how much of each body must be read, as the option `bodies` of the data source.

        Patterns must match whole bodies, as they would miss a secret that is cut in two.
        """
        if self.bodies == "none":
            return str(FINGERPRINTED)
        if self.bodies == "full" or self.redact:
            return "full"
        return str(max(int(self.bodies), FINGERPRINTED))


def check_spark(master: str, driver_memory: str, conf: tuple[str, ...]) -> None:
    """Check the settings of Spark. Raises SettingsError."""
    if master and not MASTER.fullmatch(master):
        raise SettingsError(
            f"--master {master!r}: use a Spark master: local[2], spark://host:7077, k8s://https://host or yarn"
        )
    found = MEMORY.fullmatch(driver_memory.lower())
    if not found or int(found[1]) * UNITS[found[2]] < LEAST_MEMORY:
        raise SettingsError(
            f"--driver-memory {driver_memory!r}: use a size such as 2g or 1500m, at least 450m"
        )
    for each in conf:
        if not CONF.fullmatch(each):
            raise SettingsError(f"conf {each!r}: use NAME=VALUE, such as spark.local.dir=/scratch")
