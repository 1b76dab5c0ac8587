"""The schema of the analytics job's report.

Times are ms of the store's clock, or hours 'YYYY-MM-DDTHH' in UTC; shares are fractions of 1; null means no data.
docs/analytics.md is generated from the descriptions.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from services.store.model.errors import ReportUnknown, StoreFault

VERSION = 1
MOST_OCTETS = 64 << 10  # of the JSON

Seconds = Annotated[float | None, Field(allow_inf_nan=False)]
Share = Annotated[float | None, Field(allow_inf_nan=False)]


class ReportModel(BaseModel):
    """A part of the report. Unknown fields are ignored, as the same version may get more."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, allow_inf_nan=False)


def _is(text: str, **more: Any) -> Any:
    return Field(description=text, **more)


class Count(ReportModel):
    """A named count."""

    name: str = _is("what is counted")
    count: int = _is("how many")


class Quantiles(ReportModel):
    """Quantiles of a merged histogram."""

    counts: tuple[int, ...] = _is("the merged histogram, 16 counts")
    p50: Seconds = _is("median in seconds, interpolated linearly within a bucket")
    p90: Seconds = _is("90th percentile")
    p99: Seconds = _is("99th percentile")


class Period(ReportModel):
    """The hours that the report covers."""

    first: str = _is("first hour; '': there are no tables yet")
    last: str = _is("last hour: the newest one that had begun and has data")
    hours: int = _is("length in hours (`--report-hours`)")
    known: int = _is("hours with tables")
    is_running: bool = _is(
        "whether the last hour had not ended when the run began: its figures still grow", default=False
    )


class Totals(ReportModel):
    """Totals of all queues."""

    queues: int = _is("queues with data")
    in_: int = _is("messages published, by the queues' counters: also those without an edge", alias="in")
    in_octets: int = _is("their octets, by the counters")
    out: int = _is("messages delivered, with redeliveries, by the counters")
    out_octets: int = _is("octets of messages delivered, by the edges' samples")
    acked: int = _is("messages acknowledged, by the counters")
    acked_octets: int | None = _is("their octets, by the counters; null: an older report", default=None)
    returned: int = _is("messages returned, by the counters")
    refused: int = _is("messages and requests refused, by the edges' samples")
    dead: int = _is("dead letters read by the job")
    dead_octets: int = _is("octets of their bodies")
    added: int = _is("the same as `in`, which older jobs took from the edges' samples")
    died: int = _is("messages that died, by the counters: also letters removed before the job read them")
    sampled_in: int | None = _is(
        "messages published, by the edges' samples; null: an older report", default=None
    )
    sampled_out: int | None = _is(
        "messages delivered, by the edges' samples; null: an older report", default=None
    )
    difference: str = _is("a sentence on how samples and counters differ; '': they agree", default="")


class QueueBudget(ReportModel):
    """The error budget of one queue."""

    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    asked: int = _is("messages to be published through edges: accepted and refused")
    refused: int = _is("the refused ones among them")
    availability: Share = _is("accepted share")
    used: Share = _is("used share of the error budget; above 1 it is exhausted")


class Budget(ReportModel):
    """The error budget of all queues."""

    objective: float = _is("share that must be accepted (`--objective`)")
    asked: int = _is("messages to be published through edges, all queues")
    refused: int = _is("the refused ones among them")
    availability: Share = _is("accepted share")
    used: Share = _is("used share of the error budget; above 1 it is exhausted")
    queues: tuple[QueueBudget, ...] = _is("the queues with the most used budgets, the worst first")


class QueueFigures(ReportModel):
    """Figures of one queue."""

    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    in_: int = _is("messages published, by the queues' counters", alias="in")
    out: int = _is("messages delivered, by the counters")
    refused: int = _is("refusals")
    dead: int = _is("dead letters read by the job")
    put_p50: Seconds = _is("median of the seconds from request to durable answer")
    put_p99: Seconds = _is("99th percentile of them")
    wait_p50: Seconds = _is("median of the age of messages at first delivery")
    wait_p99: Seconds = _is("99th percentile of them")
    len_max: int | None = _is("greatest number of messages in it")
    oldest_ms_max: int | None = _is("greatest age of its oldest message, ms")


class Deaths(ReportModel):
    """Messages that died."""

    by_reason: tuple[Count, ...] = _is("by reason")
    by_edge: tuple[Count, ...] = _is("by the edge that received them")
    by_origin: tuple[Count, ...] = _is("by origin; lower bounds, as rare origins of an hour are not kept")
    redriven: int = _is("those that had been redriven before")
    age: Quantiles = _is("time from publish to death (bounds WAIT_S)")


class Failure(ReportModel):
    """A group of dead letters with similar errors."""

    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    reason: str = _is("the reason of the dead letters")
    pattern: str = _is("the error without its numbers")
    fingerprint: str = _is("hash of the body without its numbers")
    count: int = _is("dead letters; a lower bound, as rare groups of an hour are not kept")
    first_ms: int = _is("when the first of them died")
    last_ms: int = _is("when the last of them died")
    example_id: str = _is("id of the oldest of them, for `penstock dead show`")
    example: str = _is("its error, redacted")


class QueueRedrives(ReportModel):
    """Redrives of one queue."""

    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    redriven: int = _is("dead letters redriven")
    died_again: int = _is("messages that died after a redrive")
    success: Share = _is("1 - died_again / redriven, at least 0")


class Redrives(ReportModel):
    """Redrives of all queues."""

    redriven: int = _is("dead letters redriven")
    died_again: int = _is("messages that died after a redrive")
    success: Share = _is("1 - died_again / redriven, at least 0")
    queues: tuple[QueueRedrives, ...] = _is("the queues with most redrives or repeated deaths")


class Change(ReportModel):
    """A sudden change of a metric."""

    hour: str = _is("the hour")
    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    metric: str = _is("in, out, refused, deaths, len_max, put_p99 or wait_p99")
    value: float = _is("value in this hour")
    week_median: float = _is("median of the hours of the week before")
    z: float = _is("distance from it in spreads")
    verdict: str = _is("up or down")


class Changes(ReportModel):
    """Sudden changes in the period."""

    count: int = _is("number of sudden changes in the period")
    top: tuple[Change, ...] = _is("the greatest of them")


class EdgeFigures(ReportModel):
    """Figures of one edge."""

    edge: str = _is("the edge")
    processes_max: int = _is("greatest number of its processes in one hour")
    connections_max: int = _is(
        "most open connections at the ends of intervals of 10 s; there may be more in between"
    )
    opened: int = _is("connections opened")
    received_octets: int = _is("octets read from peers")
    sent_octets: int = _is("octets written to peers")
    refused: tuple[Count, ...] = _is("refusals of connections and requests, by reason")


class HourFigures(ReportModel):
    """Figures of one hour."""

    hour: str = _is("the hour")
    in_: int = _is("messages published, by the queues' counters", alias="in")
    out: int = _is("messages delivered, by the counters")
    refused: int = _is("refusals")
    dead: int = _is("dead letters read by the job")


class DeadRecords(ReportModel):
    """Dead letters read by the run."""

    read: int = _is("dead letters read by the run")
    archived: int = _is("those that could be used")
    quarantined: int = _is("those that could not be used")
    gone: int = _is("letters redriven or removed before the run read them, without those of deleted queues")


class SampleRecords(ReportModel):
    """Samples read by the run."""

    read: int = _is("samples read by the run")
    archived: int = _is("those that could be used")
    quarantined: int = _is("those that could not be used")
    lost: int = _is("samples trimmed before the run read them")


class Records(ReportModel):
    """Data read by the run, regardless of the period."""

    dead: DeadRecords = _is("dead letters")
    samples: SampleRecords = _is("samples")


class Missing(ReportModel):
    """Data missed by all runs that began since the period did."""

    lost_samples: int = _is("samples trimmed before a run read them", default=0)
    lost_streams: int = _is(
        "streams that vanished or went back after they were read; how much is missing is unknown", default=0
    )
    quarantined_dead: int = _is("dead letters that could not be used", default=0)
    quarantined_samples: int = _is("samples that could not be used", default=0)
    late: int = _is(
        "of jobs before 0.2: dead letters and samples that came after the tables of their hour were closed; now 0",
        default=0,
    )

    @property
    def quarantined(self) -> int:
        """Dead letters and samples that could not be used."""
        return self.quarantined_dead + self.quarantined_samples


class Report(ReportModel):
    """The report."""

    version: int = _is(f"{VERSION}; other versions have another schema")
    run: str = _is("the run that made it")
    now_ms: int = _is("when the run began; later data is not included")
    period: Period = _is("the hours that it covers")
    totals: Totals = _is("all queues together")
    budget: Budget = _is("error budget")
    hours: tuple[HourFigures, ...] = _is("the hours with tables")
    queues: tuple[QueueFigures, ...] = _is("queues by deaths, then by messages, the most first")
    put: Quantiles = _is("time from request to durable answer, all queues (bounds PUT_S)")
    wait: Quantiles = _is("age of messages at first delivery, all queues (bounds WAIT_S)")
    refused: tuple[Count, ...] = _is("refusals of queues by reason")
    deaths: Deaths = _is("messages that died")
    failures: tuple[Failure, ...] = _is("groups of similar failures, the most frequent first")
    redrives: Redrives = _is("redrives and their success")
    changes: Changes = _is("sudden changes against the week before")
    edges: tuple[EdgeFigures, ...] = _is("figures of the edges")
    records: Records = _is("data read by the run, regardless of the period")
    missing: Missing = _is(
        "data missed by all runs that began since the period did: figures are too low by it",
        default=Missing(),
    )
    left_out: dict[str, int] = _is("number of rows left out, by list; complete lists are not named")

    @model_validator(mode="after")
    def _fill_missing(self) -> Self:
        """Derive `missing` for a report of an older job, which has only the run's own figures."""
        if "missing" in self.model_fields_set:
            return self
        samples, dead = self.records.samples, self.records.dead
        missing = Missing(
            lost_samples=samples.lost,
            quarantined_dead=dead.quarantined,
            quarantined_samples=samples.quarantined,
        )
        return self.model_copy(update={"missing": missing})

    def encode(self) -> bytes:
        """Return the report as JSON."""
        return self.model_dump_json(by_alias=True).encode()


class _Versioned(ReportModel):
    version: Any


def decode(text: bytes) -> Report:
    """Decode a report. Raises ReportUnknown for another version, StoreFault for anything else."""
    try:
        version = _Versioned.model_validate_json(text).version
        if version != VERSION:
            raise ReportUnknown(
                f"the report in the store has version {version!r:.20}, and this program reads version {VERSION}: "
                "use the penstock version of the analytics job"
            )
        return Report.model_validate_json(text)
    except ValidationError as error:
        what = error.errors(include_input=False)[0]
        where = ".".join(map(str, what["loc"]))
        raise StoreFault(f"the report in the store cannot be read: {where} {what['msg']:.80}") from error
