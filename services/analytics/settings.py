"""What a run is told: where from, where to, and how its tables are to be."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from services.analytics.redaction import trouble
from services.store.url import StoreUrl

RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
LATEST = "latest"  # name of the newest report in the output
CONF = re.compile(r"spark\.[^=\s]+=.*", re.DOTALL)
FINGERPRINTED = 4096  # octets of a body that its fingerprint knows


class SettingsError(ValueError):
    """A setting that cannot be used; the text says what to write."""


@dataclass(frozen=True, slots=True)
class Shape:
    """All that decides what a run writes. It is frozen in the run's plan: a run that is done again does the same."""

    bodies: str = "none"  # none, full, or how many octets of each the archive keeps
    redact: tuple[str, ...] = ()  # patterns of RE2; what they match is not archived
    late_hours: int = 48  # so long after the newest hour an older one is still computed anew
    retention_days: int = 0  # what is older is removed; 0: never
    week_days: int = 7  # of history that changes are told against
    top: int = 50  # rows of a queue and hour in tables of what is most frequent
    objective: float = 0.999  # of accepted among all; the rest is the error budget
    report_hours: int = 24  # that a report is about
    clock_slack_s: int = 3600  # so far behind the store's clock a record's time may lie
    fail_on_loss: bool = (
        True  # not as planned but as the run is told that carries it out: else nobody could give in
    )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "redact": list(self.redact)}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Shape:
        return cls(**{**told, "redact": tuple(told["redact"])})

    def read_bodies(self) -> str:
        """How much of each body has to be read, as the data source's option has it.

        Patterns must see whole bodies: of a secret that is cut in two they would not know either part.
        """
        if self.bodies == "none":
            return str(FINGERPRINTED)
        if self.bodies == "full" or self.redact:
            return "full"
        return str(max(int(self.bodies), FINGERPRINTED))


@dataclass(frozen=True, slots=True)
class Settings:
    store: str = field(repr=False)  # it may have a password
    output: str
    run: str
    shape: Shape = field(default_factory=Shape)
    master: str = ""  # '': as whoever started Spark has said, else Spark's own, local[*]
    driver_memory: str = "2g"
    conf: tuple[str, ...] = ()  # further settings of Spark, NAME=VALUE each
    lock_s: float = 120.0  # a lock that nobody renewed for so long is nobody's
    patience_s: float = 30.0  # how long a store that is away is tried again
    accept_clock: bool = False  # the store's is right, however far it is from others
    accept_store: bool = False  # another one than that of the runs before

    def __post_init__(self) -> None:
        """Raises SettingsError."""
        if not RUN.fullmatch(self.run):
            raise SettingsError(
                f"run id {self.run!r}: up to 100 letters, digits, '.', '_' and '-', a letter or digit first"
            )
        try:
            StoreUrl.parse(self.store)
        except ValueError as error:
            raise SettingsError(f"store: {error}") from None
        if self.run == LATEST:
            raise SettingsError(f"run id {LATEST!r}: the newest report is known by it, take another one")
        if self.shape.bodies not in ("none", "full") and not self.shape.bodies.isdigit():
            raise SettingsError(f"bodies {self.shape.bodies!r}: none, full, or a number of octets")
        for pattern in self.shape.redact:
            if why := trouble(pattern):
                raise SettingsError(f"redact {pattern!r}: {why}; patterns are those of RE2")
        if not 0 < self.shape.objective < 1:
            raise SettingsError(f"objective {self.shape.objective}: above 0 and below 1, as 0.999")
        for each in self.conf:
            if not CONF.fullmatch(each):
                raise SettingsError(f"conf {each!r}: NAME=VALUE, as spark.local.dir=/scratch")
