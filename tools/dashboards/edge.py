"""One edge, or one pod of it, in detail."""

from __future__ import annotations

from tools.dashboards.board import (
    ITS,
    OF_RELEASE,
    RATE,
    USUAL,
    Board,
    Panel,
    Row,
    Variable,
    each_second,
    ours,
)
from tools.dashboards.ring import RING
from tools.dashboards.rqp import RQP

ALIVE = f"ready{{{ITS}}}"
CHOSEN = Variable("edge", "Edge", f"label_values(penstock_ready{{{OF_RELEASE}}}, edge)")


def store_quantile(part: float) -> str:
    rate = f"rate(penstock_store_call_seconds_bucket{{{ITS}}}{RATE})"
    return f"histogram_quantile({part}, sum by ($WHOSE, edge, le) ({rate}))"


def quantile(part: float) -> str:
    rate = f"rate(penstock_request_seconds_bucket{{{ITS}}}{RATE})"
    return f"histogram_quantile({part}, sum by ($WHOSE, edge, operation, le) ({rate}))"


EDGE = Board(
    "edge",
    "Edge",
    "What edges do for their clients, and what it costs them.",
    (*USUAL, CHOSEN),
    (
        Panel.of(
            "Takes requests",
            "1 while the pod takes requests; 0: it cannot use the store, or drains.",
            "short",
            (f"min by ($WHOSE, edge, pod) (penstock_ready{{{ITS}}})", "{{edge}} {{pod}}"),
        ),
        Panel.of(
            "Requests",
            "Answered, by what was asked.",
            "reqps",
            (
                f"sum by ($WHOSE, edge, operation) (rate(penstock_requests_total{{{ITS}}}{RATE}))",
                "{{edge}} {{operation}}",
            ),
        ),
        Panel.of(
            "Failed requests",
            "Part of those answered; also questions that found nothing, as of an empty queue.",
            "percentunit",
            (
                f'sum by ($WHOSE, edge) (rate(penstock_requests_total{{{ITS},result="failed"}}{RATE})) / '
                f"sum by ($WHOSE, edge) (rate(penstock_requests_total{{{ITS}}}{RATE}))",
                "{{edge}}",
            ),
        ),
        Panel.of(
            "Time to answer, half of them",
            "The median from a request to its answer, by what was asked.",
            "s",
            (quantile(0.5), "{{edge}} {{operation}}"),
        ),
        Panel.of(
            "Time to answer, 99 of 100",
            "From a request to its answer, by what was asked.",
            "s",
            (quantile(0.99), "{{edge}} {{operation}}"),
        ),
        Panel.of(
            "The store's time to answer, 99 of 100",
            "From a call to the store to its answer; what requests take beside that is time of the edge.",
            "s",
            (store_quantile(0.99), "{{edge}}"),
        ),
        Panel.of(
            "Connections",
            "Open now, by listener; those that the edge opens itself have names of their own.",
            "short",
            (f"sum by ($WHOSE, edge, listener) (penstock_connections{{{ITS}}})", "{{edge}} {{listener}}"),
        ),
        Panel.of(
            "New connections",
            "Accepted and let in, or dialled.",
            "cps",
            (
                f"sum by ($WHOSE, edge, listener) (rate(penstock_connections_opened_total{{{ITS}}}{RATE}))",
                "{{edge}} {{listener}}",
            ),
        ),
        Panel.of(
            "Traffic",
            "Octets on connections, by listener.",
            "Bps",
            (
                f"sum by ($WHOSE, edge, listener) (rate(penstock_received_bytes_total{{{ITS}}}{RATE}))",
                "{{edge}} {{listener}} in",
            ),
            (
                f"sum by ($WHOSE, edge, listener) (rate(penstock_sent_bytes_total{{{ITS}}}{RATE}))",
                "{{edge}} {{listener}} out",
            ),
        ),
        Panel.of(
            "Refusals",
            "Connections and requests, by reason: the pages of the edges list them.",
            "reqps",
            (
                f"sum by ($WHOSE, edge, reason) (rate(penstock_refusals_total{{{ITS}}}{RATE}))",
                "{{edge}} {{reason}}",
            ),
        ),
        Panel.of(
            "What the store refused",
            "Refusals and alarms of the store, by reason.",
            "reqps",
            (
                f"sum by ($WHOSE, edge, reason) (rate(penstock_store_events_total{{{ITS}}}{RATE}))",
                "{{edge}} {{reason}}",
            ),
        ),
        Panel.of(
            "Held for clients",
            "Unfinished input and replies that nobody reads, bounded by limits.",
            "bytes",
            (f"sum by ($WHOSE, edge, pod) (penstock_input_held_bytes{{{ITS}}})", "{{edge}} {{pod}} input"),
            (f"sum by ($WHOSE, edge, pod) (penstock_output_held_bytes{{{ITS}}})", "{{edge}} {{pod}} replies"),
        ),
        Panel.of(
            "Faults of our own",
            "In the last hour; should be 0: see the log.",
            "short",
            (f"sum by ($WHOSE, edge) (increase(penstock_local_errors_total{{{ITS}}}[1h]))", "{{edge}}"),
        ),
        Panel.of(
            "Processor time",
            "Cores that a pod's processes use, all workers of an edge together.",
            "short",
            (
                f"sum by ($WHOSE, pod, instance) ({ours(f'rate(process_cpu_seconds_total{{$EDGES}}{RATE})', ALIVE)})",
                "{{pod}} {{instance}}",
            ),
        ),
        Panel.of(
            "Memory",
            "Resident; of an edge with several workers all of them, and what they share counts for each.",
            "bytes",
            (
                f"sum by ($WHOSE, pod, instance) ({ours('process_resident_memory_bytes{$EDGES}', ALIVE)})",
                "{{pod}} {{instance}}",
            ),
        ),
        Panel.of(
            "Open files",
            "Part of those that a process may have: each connection is one. Of several workers it is the fullest.",
            "percentunit",
            (
                "max by ($WHOSE, pod, instance) "
                f"({ours('process_open_fds{$EDGES} / process_max_fds{$EDGES}', ALIVE)})",
                "{{pod}} {{instance}}",
            ),
        ),
        Panel.of(
            "Traces",
            "Spans by what became of them, where `tracing.endpoint` is set: who may not lose any looks for `dropped`.",
            "cps",
            (each_second("trace_spans_total", "edge", "result"), "{{edge}} {{result}}"),
        ),
        Row("Text service"),
        Panel.of(
            "Text service: lines written",
            "MESSAGE lines to subscribers, and messages that came from neighbours.",
            "mps",
            (f"sum by ($WHOSE, pod) (rate(penstock_deliveries_total{{{ITS}}}{RATE}))", "{{pod}} delivered"),
            (
                f"sum by ($WHOSE, pod) (rate(penstock_link_messages_total{{{ITS}}}{RATE}))",
                "{{pod}} of neighbours",
            ),
        ),
        Panel.of(
            "Text service: subscribers and links",
            "Slow ones are served from the log. A neighbour that is not followed by any pod is down.",
            "short",
            (f"sum by ($WHOSE, pod) (penstock_subscriptions{{{ITS}}})", "{{pod}} subscriptions"),
            (f"sum by ($WHOSE, pod) (penstock_slow_subscribers{{{ITS}}})", "{{pod}} slow subscribers"),
            (f"sum by ($WHOSE, pod) (penstock_links_following{{{ITS}}})", "{{pod}} neighbours followed"),
            (f"sum by ($WHOSE, pod) (penstock_links_serving{{{ITS}}})", "{{pod}} followers"),
        ),
        *RQP,
        *RING,
        Row("System V bridge"),
        Panel.of(
            "System V: messages",
            "Messages carried by mapping; a mapping that cannot go on waits.",
            "mps",
            (f"sum by ($WHOSE, mapping) (rate(penstock_sysv_messages_total{{{ITS}}}{RATE}))", "{{mapping}}"),
            (f"max by ($WHOSE, mapping) (penstock_sysv_waiting{{{ITS}}})", "{{mapping}} waits"),
        ),
        Panel.of(
            "System V: dead letters",
            "Messages that could not be carried, by mapping and reason.",
            "mps",
            (each_second("sysv_dead_total", "mapping", "reason"), "{{mapping}} {{reason}}"),
        ),
        Panel.of(
            "System V: waits",
            "How often a mapping could not go on, and why.",
            "cps",
            (each_second("sysv_waits_total", "mapping", "reason"), "{{mapping}} {{reason}}"),
        ),
    ),
)
