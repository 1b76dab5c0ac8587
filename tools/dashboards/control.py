"""The rows of the overview for the operator and the console."""

from __future__ import annotations

from tools.dashboards.board import RATE, Panel, Row, each_second, in_an_hour, ours

CONTROL = "$CONTROL"
ALIVE = "operator_store_up{$CONTROL}"


def slowest(metric: str, label: str) -> str:
    """Return the query for the p99 of a histogram by this label."""
    return f"histogram_quantile(0.99, {each_second(f'{metric}_bucket', label, 'le', of=CONTROL)})"


OPERATOR = (
    Row("Operator"),
    Panel.of(
        "The operator's store",
        "1 while it is available; and how often it came back with another dataset in the last hour.",
        "short",
        ("min by ($WHOSE) (penstock_operator_store_up{$CONTROL})", "available"),
        (in_an_hour("operator_store_restored_total", of=CONTROL), "replaced"),
    ),
    Panel.of(
        "Queues and peers",
        "In the store; peers by how they were declared.",
        "short",
        ("max by ($WHOSE) (penstock_queues{$CONTROL})", "queues"),
        ("max by ($WHOSE) (penstock_queues_unread{$CONTROL})", "unreadable queues"),
        ("max by ($WHOSE, by) (penstock_operator_peers{$CONTROL})", "peers: {{by}}"),
    ),
    Panel.of(
        "Work queue",
        "Resources queued or being reconciled. The operator keeps up while this returns to 0.",
        "short",
        ("sum by ($WHOSE) (penstock_operator_waiting{$CONTROL})", "queued"),
    ),
    Panel.of(
        "Reconciliations",
        "By result; failed ones are retried.",
        "cps",
        (each_second("operator_looks_total", "kind", "result", of=CONTROL), "{{kind}} {{result}}"),
    ),
    Panel.of(
        "Time to reconcile, p99",
        "Per resource, by kind.",
        "s",
        (slowest("operator_look_seconds", "kind"), "{{kind}}"),
    ),
    Panel.of(
        "Status updates and events",
        "Written by the operator: statuses by kind, events by reason.",
        "cps",
        (each_second("operator_status_patches_total", "kind", of=CONTROL), "status of {{kind}}"),
        (each_second("operator_events_total", "reason", of=CONTROL), "event {{reason}}"),
    ),
    Panel.of(
        "Sweeps over all resources",
        "In the last hour, by result.",
        "short",
        (in_an_hour("operator_sweeps_total", "result", of=CONTROL), "{{result}}"),
    ),
    Panel.of(
        "Duration of a sweep",
        "Of the last one.",
        "s",
        ("max by ($WHOSE) (penstock_operator_sweep_seconds{$CONTROL})", "last sweep"),
    ),
    Panel.of(
        "Queues of deleted resources",
        "In the last hour, by outcome.",
        "short",
        (in_an_hour("operator_removed_total", "outcome", of=CONTROL), "{{outcome}}"),
    ),
    Panel.of(
        "Stranded ring messages",
        "Unsent messages of ring nodes that were removed or renamed.",
        "short",
        ("max by ($WHOSE, queue) (penstock_operator_ring_stranded_messages{$CONTROL})", "{{queue}}"),
    ),
    Panel.of(
        "The operator's CPU",
        "CPU cores in use.",
        "short",
        (
            f"sum by ($WHOSE, pod, instance) ({ours(f'rate(process_cpu_seconds_total{{$CONTROL}}{RATE})', ALIVE)})",
            "{{pod}} {{instance}}",
        ),
    ),
    Panel.of(
        "The operator's memory",
        "Resident memory.",
        "bytes",
        (
            f"sum by ($WHOSE, pod, instance) ({ours('process_resident_memory_bytes{$CONTROL}', ALIVE)})",
            "{{pod}} {{instance}}",
        ),
    ),
)

CONSOLE = (
    Row("Console"),
    Panel.of(
        "Requests to the console",
        "By HTTP method and status.",
        "reqps",
        (each_second("console_requests_total", "method", "status", of=CONTROL), "{{method}} {{status}}"),
    ),
    Panel.of(
        "Latency of the console, p99",
        "By HTTP method.",
        "s",
        (slowest("console_request_seconds", "method"), "{{method}}"),
    ),
    Panel.of(
        "Live views and jobs",
        "Open pages with live updates; running redrives and purges.",
        "short",
        ("sum by ($WHOSE) (penstock_console_streams{$CONTROL})", "live views"),
        ("sum by ($WHOSE) (penstock_console_jobs{$CONTROL})", "jobs"),
    ),
    Panel.of(
        "Changes missing from the audit log",
        "In the last hour: the store did not accept them; they are only in the log of the console's pod.",
        "short",
        (in_an_hour("console_audit_failures_total", of=CONTROL), "only logged"),
    ),
)
