"""Series that fire each branch of each alert, and series just below its threshold.

`alerts/` tests the texts, durations and short spikes of alerts; this file has one row for each case that a rule covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MINUTES = 200  # of samples; longer than the `for` of any rule
RISES, STAYS = f"0+1x{MINUTES}", f"7x{MINUTES}"
Series = Mapping[str, str]  # values in promtool's notation, one each minute


@dataclass(frozen=True, slots=True)
class Case:
    alert: str
    called: str
    sounds: Series
    silent: Series
    value: float | None = None  # labels that are the same for all series


def always(number: float) -> str:
    return f"{number}x{MINUTES}"


def of(metric: str, **labels: str) -> str:
    selector = ",".join(f'{name}="{value}"' for name, value in {"namespace": "shop", **labels}.items())
    return f"penstock_{metric}{{{selector}}}"


def risen(alert: str, metric: str, **labels: str) -> Case:
    series = of(metric, **labels)
    return Case(alert, " ".join((metric, *labels.values())), {series: RISES}, {series: STAYS})


def level(alert: str, metric: str, sounds: float, silent: float, **labels: str) -> Case:
    series = of(metric, **labels)
    return Case(
        alert, " ".join((metric, *labels.values())), {series: always(sounds)}, {series: always(silent)}
    )


def level_of_two_processes(
    alert: str, metric: str, sounds: float, silent: float, *, value: float | None = None
) -> Case:
    """Return a case with two processes that export the same values."""
    pods = [of(metric, pod=pod, queue="orders") for pod in ("o-0", "c-0")]
    return Case(
        alert, metric, dict.fromkeys(pods, always(sounds)), dict.fromkeys(pods, always(silent)), value=value
    )


def seconds(operation: str, **rates: int) -> Series:
    """Return a histogram from the requests a minute by bucket, as le_1_25=100."""
    bounds = {name[3:].replace("_", ".").replace("Inf", "+Inf"): rate for name, rate in rates.items()}
    return {
        of("request_seconds_bucket", edge="ring", operation=operation, le=le): f"0+{rate}x{MINUTES}"
        for le, rate in bounds.items()
    }


def answers(bad: int) -> Series:
    """Return a thousand console requests a minute, `bad` of which fail."""
    rates = {"200": 1000 - bad, "503": bad}
    return {
        of("console_requests_total", edge="console", status=status): f"0+{rate}x{MINUTES}"
        for status, rate in rates.items()
    }


def edges() -> Iterator[Case]:
    now_s = MINUTES * 60
    yield level("PenstockEdgeNotReady", "ready", 0, 1, edge="tmq", pod="p-0")
    ready = of("ready", edge="tmq", pod="p-0")
    there = f"1x{MINUTES - 30}"
    twice, rare, once = (there + after for after in (" 0x1 1x13 0x1 1x12", " 0 1x13 0x0 1x14", " 0x3 1x25"))
    yield Case("PenstockEdgeUnsteady", "in two goes", {ready: twice}, {ready: rare})
    yield Case("PenstockEdgeUnsteady", "in one", {ready: twice}, {ready: once})
    yield Case("PenstockEdgesGone", "none", {}, {of("ready", edge="tmq"): always(1)})
    yield Case("PenstockPodDown", "up", {_up(): always(0)}, {_up(): always(1)})
    start = 'process_start_time_seconds{namespace="shop",pod="p-0"}'
    before, goes_on = MINUTES - 50, "100x15 200x15"
    yield Case(
        "PenstockPodRestarts",
        "starts",
        {start: f"0x{before} {goes_on} 300x50"},
        {start: f"0x{before} {goes_on} 200x50"},
    )
    third, fifth = (f"1x{MINUTES - 30}" + away * 6 for away in (" 0x1 1x2", " 0x0 1x3"))
    yield Case("PenstockPodRestarts", "is away", {_up(): third}, {_up(): fifth})
    goes, at_once = (f"1x{MINUTES - 30}{away}" for away in (" 0x5 1x8 0x5 1x8", " 0x11 1x17"))
    yield Case("PenstockPodRestarts", "in two goes", {_up(): goes}, {_up(): at_once})
    one, both = ([of("ready", edge="tmq", pod=pod) for pod in pods] for pods in (("a",), ("a", "b")))
    yield Case(
        "PenstockPodsMissing", "pods", dict.fromkeys(one, always(1)), dict.fromkeys(both, always(1)), value=1
    )
    yield risen("PenstockLocalErrors", "local_errors_total", edge="tmq")
    yield risen("PenstockWorkerDied", "worker_deaths_total", edge="tmq", pod="p-0")
    for reason in ("connection_limit", "input_budget", "output_budget"):
        yield risen("PenstockEdgeFull", "refusals_total", edge="tmq", reason=reason)
    for result in ("failed", "dropped"):
        yield risen("PenstockTracesLost", "trace_spans_total", edge="tmq", result=result)
    ends, in_use = "certificate_not_after_time_seconds", {"edge": "tmq", "pod": "p-0", "listener": "tmq"}
    yield level("PenstockCertificateEnds", ends, now_s + 600_000, now_s + 610_000, **in_use)
    slow = {"le_1": 98, "le_1_25": 100, "le_Inf": 100}
    fast = seconds("push", le_0_75=98, le_1=100, le_Inf=100)
    yield Case("PenstockSlowRequests", "99 of 100", seconds("push", **slow), fast)
    yield Case("PenstockSlowRequests", "of the store", seconds("push", **slow), seconds("ring_push", **slow))


def _up() -> str:
    return 'up{namespace="shop",pod="p-0"}'


def store() -> Iterator[Case]:
    refused = (
        "store_unavailable",
        "dataset_lost",
        "not_initialised",
        "store_full",
        "store_evicts",
        "ack_level_lost",
    )
    for reason in refused:
        yield risen("PenstockStoreRefuses", "refusals_total", edge="tmq", reason=reason)
    calm = f"0x{MINUTES - 30}"
    for reason in refused:  # each increase is visible for two minutes
        refusals = of("refusals_total", edge="tmq", reason=reason)
        yield Case(
            "PenstockStoreUnsteady",
            reason,
            {refusals: f"{calm} 1x6 2x6 3x6 4x7 5"},
            {refusals: f"{calm} 1x6 2x6 3x6 4x8"},
        )
    refusals = of("refusals_total", edge="tmq", reason="store_full")
    goes, at_once = (f"{calm} {rises}" for rises in ("1 2 3 4 5x8 6 7 8 9 10x12", "1 2 3 4 5 6 7 8 9 10x20"))
    yield Case("PenstockStoreUnsteady", "in two goes", {refusals: goes}, {refusals: at_once})
    for reason in ("store_fault", "too_late", "outcome_unknown"):
        yield risen("PenstockStoreFaults", "store_events_total", edge="tmq", reason=reason)
    yield risen("PenstockStoreDataLost", "store_events_total", edge="tmq", reason="dataset_changed")
    yield Case("PenstockStoreDiskFillsUp", "room", _disk(24), _disk(26), value=0.24)
    now_s = MINUTES * 60
    replaced = "operator_store_replaced_time_seconds"
    yield level("PenstockStoreDataLost", replaced, now_s - 3590, now_s - 3610, pod="o-0")
    for reason in ("store_rolled_back", "new_generation", "counter_mismatch"):
        yield risen("PenstockStoreAlarm", "store_events_total", edge="tmq", reason=reason)


def _disk(available: int) -> Series:
    claim = '{namespace="shop",persistentvolumeclaim="data-p-redis-0"}'
    fields = {"available": available, "capacity": 100}
    return {f"kubelet_volume_stats_{name}_bytes{claim}": always(number) for name, number in fields.items()}


def queues() -> Iterator[Case]:
    died = [of("queue_died_messages_total", pod=pod, queue="orders") for pod in ("o-0", "c-0")]
    yield Case(
        "PenstockDeadLetters", "died", dict.fromkeys(died, RISES), dict.fromkeys(died, STAYS), value=60
    )
    there = {
        of("queue_dead_messages", pod=pod, queue=queue): (before, after)
        for pod in ("o-0", "c-0")
        for queue, before, after in (("orders", 3, 5), ("bills", 1, 2))
    }
    rose = {series: f"{before}x{MINUTES - 20} {after}x20" for series, (before, after) in there.items()}
    stayed = {series: always(before) for series, (before, _) in there.items()}
    counted = {died[0]: STAYS, **{of("queues_unread", pod=pod): always(0) for pod in ("o-0", "c-0")}}
    yield Case("PenstockDeadLetters", "while unobserved", counted | rose, counted | stayed, value=3)
    shown = {of("queues", pod="o-0"): always(9)}
    unread = of("queues_unread", pod="o-0")
    yield Case("PenstockQueuesUnseen", "some", shown | {unread: always(1)}, shown | {unread: always(0)})
    yield Case("PenstockQueuesUnseen", "all", {}, shown)
    yield level_of_two_processes("PenstockStoreFillsUp", "store_fullest_ratio", 0.61, 0.59, value=0.61)
    yield level_of_two_processes("PenstockQueueFillsUp", "queue_used_ratio", 0.81, 0.8, value=0.81)
    yield level_of_two_processes("PenstockBacklog", "queue_oldest_age_seconds", 3601, 3600, value=3601)
    yield risen("PenstockCopiesLost", "link_copies_lost_total", pod="o-0")
    dropped = [of("queue_dead_trimmed_messages_total", pod=pod, queue="orders") for pod in ("o-0", "c-0")]
    yield Case(
        "PenstockDeadLettersDropped",
        "dropped",
        dict.fromkeys(dropped, RISES),
        dict.fromkeys(dropped, STAYS),
        value=60,
    )


def protocols() -> Iterator[Case]:
    stuck = [of("rqp_stuck_queues", edge="rqp", protocol="rqp-mca", pod=pod) for pod in ("a", "b")]
    yield Case(
        "PenstockQueueStuck",
        "on two pods",
        dict(zip(stuck, (always(1), always(2)), strict=True)),
        dict.fromkeys(stuck, always(0)),
        value=3,
    )
    yield risen("PenstockMessagesLost", "rqp_lost_messages_total", edge="rqp", protocol="rqp-mca")
    yield risen("PenstockCastUnburied", "rqp_cast_unburied_total", edge="rqp", reason="injured")
    yield risen("PenstockCastHeld", "rqp_cast_held_messages_total", edge="rqp")
    yield risen("PenstockCastIdClash", "rqp_cast_id_clashes_total", edge="rqp")
    yield level("PenstockRingWithoutLeader", "ring_led", 0, 1, pod="p-0")
    sides = [of(f"ring_{side}", pod="p-0") for side in ("predecessor", "successor")]
    for missing in sides:
        there = dict.fromkeys(sides, always(1))
        yield Case("PenstockRingNeighbourMissing", missing, there | {missing: always(0)}, there)
    yield risen("PenstockLinkGaps", "link_gaps_total", edge="pubsub")
    yield risen("PenstockSubscribersOvertaken", "subscriber_lost_messages_total", edge="pubsub")
    down = [of("links_down", edge="pubsub", pod="p-0", endpoint=each) for each in ("a", "b")]
    down_links, none = (dict.fromkeys(down, always(number)) for number in (2, 0))
    yield Case("PenstockLinkDown", "down", down_links, none, value=2)


def control() -> Iterator[Case]:
    up = of("operator_store_up", pod="o-0")
    yield Case("PenstockOperatorGone", "none", {}, {up: always(1)})
    yield Case("PenstockOperatorStoreDown", "down", {up: always(0)}, {up: always(1)})
    yield level("PenstockRingStranded", "operator_ring_stranded_messages", 1, 0, pod="o-0", queue="ring/7/n")
    for reason in ("Invalid", "Conflict", "UnknownPeer", "AckLevelRefused", "Refused", "Failed"):
        pods = [of("operator_resources", kind="queues", reason=reason, pod=pod) for pod in ("a", "b")]
        yield Case(
            "PenstockResourcesNotReady",
            reason,
            dict(zip(pods, (always(1), always(2)), strict=True)),
            dict.fromkeys(pods, always(0)),
            value=3,
        )
    for metric in ("operator_looks_total", "operator_sweeps_total"):
        yield risen("PenstockOperatorFailing", metric, result="failed")
    yield level("PenstockConsoleNotReady", "ready", 0, 1, edge="console", pod="c-0")
    console = of("ready", edge="console", pod="c-0")
    yield Case("PenstockConsoleGone", "none", {}, {console: always(1)})
    yield Case("PenstockConsoleFailing", "one in twenty", answers(55), answers(45))
    yield risen("PenstockConsoleAuditFailing", "console_audit_failures_total", edge="console")
    report = of("report_time_seconds", pod="o-0")
    old, young = (f"-{age}+60x{MINUTES}" for age in (10_801, 10_800))
    yield Case("PenstockAnalyticsStale", "age", {report: old}, {report: young})
    for lost in ("report_lost_samples", "report_lost_streams"):
        yield level("PenstockAnalyticsLoss", lost, 1, 0, pod="o-0")
    for there in (up, console):
        yield Case("PenstockAnalyticsNoReport", there, {there: always(1)}, {there: always(1), report: young})


# series of the same metrics that must not fire any alert
HARMLESS: Series = {
    of("refusals_total", edge="tmq", reason="queue_full"): RISES,
    of("store_events_total", edge="tmq", reason="queue_full"): RISES,
    of("request_seconds_bucket", edge="ring", operation="ring_pull", le="1"): STAYS,
    of("request_seconds_bucket", edge="ring", operation="ring_pull", le="+Inf"): RISES,
    of("trace_spans_total", edge="tmq", result="exported"): RISES,
    of("trace_spans_total", edge="tmq", result="limited"): RISES,
    of("trace_spans_total", edge="tmq", result="unfollowed"): RISES,
    of("operator_looks_total", result="done"): RISES,
    of("operator_sweeps_total", result="done"): RISES,
    of("operator_resources", kind="queues", reason="Declared"): always(100),
}
CASES = (*edges(), *store(), *queues(), *protocols(), *control())
