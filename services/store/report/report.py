"""The report of the analytics job: its shape, in the output of the job and in the store.

Times are ms of the store's clock, or hours 'YYYY-MM-DDTHH', UTC; shares are of 1; null: there was nothing to
compute it from. docs/analytics.md has the texts of all fields.
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
    """Further fields may come in the same version: who does not know them leaves them alone."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, allow_inf_nan=False)


def _is(text: str, **more: Any) -> Any:
    return Field(description=text, **more)


class Count(ReportModel):
    name: str = _is("what is counted")
    count: int = _is("how many")


class Quantiles(ReportModel):
    """Of a merged histogram."""

    counts: tuple[int, ...] = _is("the merged histogram, 16 counts")
    p50: Seconds = _is("half of them took so many seconds at most, linear inside of a bucket")
    p90: Seconds = _is("90 % of them")
    p99: Seconds = _is("99 % of them")


class Period(ReportModel):
    first: str = _is("its first hour; '': there are no tables yet")
    last: str = _is("its last hour, the newest that had begun and of which anything is known")
    hours: int = _is("its length (`--report-hours`)")
    known: int = _is("hours of it of which there are tables")
    is_running: bool = _is(
        "whether its last hour was not over when the run was planned: its figures grow", default=False
    )


class Totals(ReportModel):
    queues: int = _is("queues of which anything is known")
    in_: int = _is("messages put in, by the samples of edges", alias="in")
    in_octets: int = _is("their octets")
    out: int = _is("messages given out, also again")
    out_octets: int = _is("their octets")
    acked: int = _is("messages acknowledged")
    returned: int = _is("messages that went back")
    refused: int = _is("messages and requests that were refused")
    dead: int = _is("dead letters that the job has read")
    dead_octets: int = _is("octets of their bodies")
    added: int = _is("messages put in, by the queues' counters: also those of no edge")
    died: int = _is(
        "messages that died, by the queues' counters: also letters that were gone before the job came"
    )


class QueueBudget(ReportModel):
    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    asked: int = _is("messages that were to be put in: accepted and refused")
    refused: int = _is("of them, those that were refused")
    availability: Share = _is("share that was accepted")
    used: Share = _is("refused share as a part of what the objective leaves; above 1: the budget is spent")


class Budget(ReportModel):
    objective: float = _is("share that is to be accepted (`--objective`)")
    asked: int = _is("messages that were to be put in, all queues")
    refused: int = _is("of them, those that were refused")
    availability: Share = _is("share that was accepted")
    used: Share = _is("refused share as a part of what the objective leaves; above 1: the budget is spent")
    queues: tuple[QueueBudget, ...] = _is("those that have used most of theirs, the worst first")


class QueueFigures(ReportModel):
    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    in_: int = _is("messages put in", alias="in")
    out: int = _is("messages given out")
    refused: int = _is("refusals")
    dead: int = _is("dead letters")
    put_p50: Seconds = _is("median of the seconds from request to durable answer")
    put_p99: Seconds = _is("99 % of them")
    wait_p50: Seconds = _is("median of the age of messages when first given out")
    wait_p99: Seconds = _is("99 % of them")
    len_max: int | None = _is("most messages that it held")
    oldest_ms_max: int | None = _is("greatest age of its oldest message, ms")


class Deaths(ReportModel):
    by_reason: tuple[Count, ...] = _is("why they died")
    by_edge: tuple[Count, ...] = _is("the edges by which they had come in")
    by_origin: tuple[Count, ...] = _is(
        "who had put them in; at least so many, as rare origins of an hour are not kept"
    )
    redriven: int = _is("of them, those that had been brought back before")
    age: Quantiles = _is("time from put to death (bounds WAIT_S)")


class Failure(ReportModel):
    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    reason: str = _is("why")
    pattern: str = _is("the error without its numbers")
    fingerprint: str = _is("the same for bodies that differ only in numbers")
    count: int = _is("dead letters; at least so many, as rare ones of an hour are not kept")
    first_ms: int = _is("when the first of them died")
    last_ms: int = _is("when the last of them died")
    example_id: str = _is("id of the oldest of them, for `penstock dead show`")
    example: str = _is("its error, redacted")


class QueueRedrives(ReportModel):
    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    redriven: int = _is("dead letters brought back")
    died_again: int = _is("messages that died and had been brought back before")
    success: Share = _is("1 - died_again / redriven, at least 0")


class Redrives(ReportModel):
    redriven: int = _is("dead letters brought back")
    died_again: int = _is("messages that died and had been brought back before")
    success: Share = _is("1 - died_again / redriven, at least 0")
    queues: tuple[QueueRedrives, ...] = _is("where most were brought back or died again")


class Change(ReportModel):
    hour: str = _is("when")
    domain: str = _is("transaction domain")
    queue: str = _is("the queue")
    metric: str = _is("in, out, refused, deaths, len_max, put_p99 or wait_p99")
    value: float = _is("in this hour")
    week_median: float = _is("median of the hours of the week before")
    z: float = _is("distance from it in spreads")
    verdict: str = _is("up or down")


class Changes(ReportModel):
    count: int = _is("sudden changes in the period")
    top: tuple[Change, ...] = _is("the greatest of them")


class EdgeFigures(ReportModel):
    edge: str = _is("the edge")
    processes_max: int = _is("most processes that told of themselves in one hour")
    connections_max: int = _is("most connections open at the end of 10 s; between two ends there may be more")
    opened: int = _is("connections opened")
    received_octets: int = _is("octets read from peers")
    sent_octets: int = _is("octets written to peers")
    refused: tuple[Count, ...] = _is("refusals of connections and requests, by reason")


class HourFigures(ReportModel):
    hour: str = _is("the hour")
    in_: int = _is("messages put in", alias="in")
    out: int = _is("messages given out")
    refused: int = _is("refusals")
    dead: int = _is("dead letters")


class DeadRecords(ReportModel):
    read: int = _is("dead letters that the run has read")
    archived: int = _is("of them, those in the archive")
    quarantined: int = _is("of them, those that could not be used")
    gone: int = _is(
        "brought back or removed before the run came; letters of a queue that was deleted before are not in it"
    )


class SampleRecords(ReportModel):
    read: int = _is("samples that the run has read")
    archived: int = _is("of them, those in the archive")
    quarantined: int = _is("of them, those that could not be used")
    lost: int = _is("trimmed before the run came")


class Records(ReportModel):
    """Of the run alone, not of the period."""

    dead: DeadRecords = _is("dead letters")
    samples: SampleRecords = _is("samples")


class Missing(ReportModel):
    """Of all runs that were planned in the period or behind it."""

    lost_samples: int = _is("samples that were trimmed before a run came", default=0)
    lost_streams: int = _is(
        "streams that vanished or went back after they were read: nobody knows how much of them is missing",
        default=0,
    )
    quarantined_dead: int = _is("dead letters that could not be used", default=0)
    quarantined_samples: int = _is("samples that could not be used", default=0)
    late: int = _is(
        "dead letters and samples that came when the tables of their hour were closed: the archive alone has them",
        default=0,
    )

    @property
    def quarantined(self) -> int:
        return self.quarantined_dead + self.quarantined_samples


class Report(ReportModel):
    version: int = _is(f"{VERSION}; another one has another shape")
    run: str = _is("the run that made it")
    now_ms: int = _is("when the run was planned: what came later is not in it")
    period: Period = _is("what it is about")
    totals: Totals = _is("all queues together")
    budget: Budget = _is("error budget")
    hours: tuple[HourFigures, ...] = _is("the hours of which there are tables")
    queues: tuple[QueueFigures, ...] = _is("those with most deaths first, then those with most messages")
    put: Quantiles = _is("time from request to durable answer, all queues (bounds PUT_S)")
    wait: Quantiles = _is("age of messages when first given out, all queues (bounds WAIT_S)")
    refused: tuple[Count, ...] = _is("refusals of queues by reason")
    deaths: Deaths = _is("what died")
    failures: tuple[Failure, ...] = _is("what fails alike, the most frequent first")
    redrives: Redrives = _is("whether it helped to bring dead letters back")
    changes: Changes = _is("what is suddenly otherwise than in the week before")
    edges: tuple[EdgeFigures, ...] = _is("how edges were themselves")
    records: Records = _is("what the run has read, not the period")
    missing: Missing = _is(
        "what all runs that were planned since the period began have missed: figures are too low by that",
        default=Missing(),
    )
    left_out: dict[str, int] = _is("rows that had no room, by the list; lists without any are not named")

    @model_validator(mode="after")
    def _of_before(self) -> Self:
        """A job of before tells only what the run itself has missed."""
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
        return self.model_dump_json(by_alias=True).encode()


class _Versioned(ReportModel):
    version: Any


def decode(text: bytes) -> Report:
    """Raises ReportUnknown for another version, StoreFault for what is no report."""
    try:
        version = _Versioned.model_validate_json(text).version
        if version != VERSION:
            raise ReportUnknown(
                f"the report in the store is of version {version!r:.20}, and this program knows {VERSION}: "
                "use the penstock that the analytics job is of"
            )
        return Report.model_validate_json(text)
    except ValidationError as error:
        what = error.errors(include_input=False)[0]
        where = ".".join(map(str, what["loc"]))
        raise StoreFault(f"the report in the store cannot be read: {where} {what['msg']:.80}") from error
