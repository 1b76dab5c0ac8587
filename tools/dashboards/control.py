"""The operator and the console, which are no edges: the rows of the overview about them."""

from __future__ import annotations

from tools.dashboards.board import RATE, Panel, Row, each_second, in_an_hour, ours

CONTROL = "$CONTROL"
ALIVE = "operator_store_up{$CONTROL}"


def slowest(metric: str, label: str) -> str:
    return f"histogram_quantile(0.99, {each_second(f'{metric}_bucket', label, 'le', of=CONTROL)})"


OPERATOR = (
    Row("Operator"),
    Panel.of(
        "The operator's store",
        "1 while it can be used; and how often an empty one was set up anew in the last hour.",
        "short",
        ("min by ($WHOSE) (penstock_operator_store_up{$CONTROL})", "can be used"),
        (in_an_hour("operator_store_restored_total", of=CONTROL), "set up anew"),
    ),
    Panel.of(
        "Queues and peers",
        "That there are in the store; peers by who declared them.",
        "short",
        ("max by ($WHOSE) (penstock_queues{$CONTROL})", "queues"),
        ("max by ($WHOSE) (penstock_queues_unread{$CONTROL})", "of them unread"),
        ("max by ($WHOSE, by) (penstock_operator_peers{$CONTROL})", "peers: {{by}}"),
    ),
    Panel.of(
        "Resources that wait",
        "To be looked at, or are just now: the operator keeps up while it falls to 0 again.",
        "short",
        ("sum by ($WHOSE) (penstock_operator_waiting{$CONTROL})", "wait"),
    ),
    Panel.of(
        "Looks at resources",
        "By what came of them; a failed one is tried again.",
        "cps",
        (each_second("operator_looks_total", "kind", "result", of=CONTROL), "{{kind}} {{result}}"),
    ),
    Panel.of(
        "Time to look, 99 of 100",
        "At one resource, by its kind.",
        "s",
        (slowest("operator_look_seconds", "kind"), "{{kind}}"),
    ),
    Panel.of(
        "What the operator writes",
        "Statuses by kind, and events by reason.",
        "cps",
        (each_second("operator_status_patches_total", "kind", of=CONTROL), "status of {{kind}}"),
        (each_second("operator_events_total", "reason", of=CONTROL), "event {{reason}}"),
    ),
    Panel.of(
        "Passes over all resources",
        "In the last hour, by what came of them.",
        "short",
        (in_an_hour("operator_sweeps_total", "result", of=CONTROL), "{{result}}"),
    ),
    Panel.of(
        "Time of a pass",
        "That the last one took.",
        "s",
        ("max by ($WHOSE) (penstock_operator_sweep_seconds{$CONTROL})", "last pass"),
    ),
    Panel.of(
        "Queues whose resource went",
        "In the last hour, by what became of them.",
        "short",
        (in_an_hour("operator_removed_total", "outcome", of=CONTROL), "{{outcome}}"),
    ),
    Panel.of(
        "Left by nodes of a ring",
        "Messages that nobody sends: their node is gone, or has another name now.",
        "short",
        ("max by ($WHOSE, queue) (penstock_operator_ring_stranded_messages{$CONTROL})", "{{queue}}"),
    ),
    Panel.of(
        "The operator's processor time",
        "Cores that it uses.",
        "short",
        (
            f"sum by ($WHOSE, pod, instance) ({ours(f'rate(process_cpu_seconds_total{{$CONTROL}}{RATE})', ALIVE)})",
            "{{pod}} {{instance}}",
        ),
    ),
    Panel.of(
        "The operator's memory",
        "Resident.",
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
        "Answered, by HTTP method and status.",
        "reqps",
        (each_second("console_requests_total", "method", "status", of=CONTROL), "{{method}} {{status}}"),
    ),
    Panel.of(
        "The console's time to answer, 99 of 100",
        "By HTTP method.",
        "s",
        (slowest("console_request_seconds", "method"), "{{method}}"),
    ),
    Panel.of(
        "Live views and jobs",
        "Pages that are open and follow what happens; redrives and purges under way.",
        "short",
        ("sum by ($WHOSE) (penstock_console_streams{$CONTROL})", "live views"),
        ("sum by ($WHOSE) (penstock_console_jobs{$CONTROL})", "jobs"),
    ),
    Panel.of(
        "Changes that are not in the audit log",
        "In the last hour: the store took no line; each is in the log of the console's pod alone.",
        "short",
        (in_an_hour("console_audit_failures_total", of=CONTROL), "only logged"),
    ),
)
