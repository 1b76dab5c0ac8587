"""The dashboard of one edge or pod."""

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
    """Return the query for a quantile of the store's latency."""
    rate = f"rate(penstock_store_call_seconds_bucket{{{ITS}}}{RATE})"
    return f"histogram_quantile({part}, sum by ($WHOSE, edge, le) ({rate}))"


def quantile(part: float) -> str:
    """Return the query for a quantile of the latency by operation."""
    rate = f"rate(penstock_request_seconds_bucket{{{ITS}}}{RATE})"
    return f"histogram_quantile({part}, sum by ($WHOSE, edge, operation, le) ({rate}))"


EDGE = Board(
    "edge",
    "Edge",
    "Traffic, latency and resources of edges.",
    (*USUAL, CHOSEN),
    (
        Panel.of(
            "Ready",
            "1 while the pod is ready; 0 while the store is unavailable or the pod drains.",
            "short",
            (f"min by ($WHOSE, edge, pod) (penstock_ready{{{ITS}}})", "{{edge}} {{pod}}"),
        ),
        Panel.of(
            "Requests",
            "By operation.",
            "reqps",
            (
                f"sum by ($WHOSE, edge, operation) (rate(penstock_requests_total{{{ITS}}}{RATE}))",
                "{{edge}} {{operation}}",
            ),
        ),
        Panel.of(
            "Failed requests",
            "Fraction of all requests; includes requests that found nothing, such as on an empty queue.",
            "percentunit",
            (
                f'sum by ($WHOSE, edge) (rate(penstock_requests_total{{{ITS},result="failed"}}{RATE})) / '
                f"sum by ($WHOSE, edge) (rate(penstock_requests_total{{{ITS}}}{RATE}))",
                "{{edge}}",
            ),
        ),
        Panel.of(
            "Latency, p50",
            "Median from request to reply, by operation.",
            "s",
            (quantile(0.5), "{{edge}} {{operation}}"),
        ),
        Panel.of(
            "Latency, p99",
            "From request to reply, by operation.",
            "s",
            (quantile(0.99), "{{edge}} {{operation}}"),
        ),
        Panel.of(
            "Latency of the store, p99",
            "From a call to the store to its reply; the rest of a request's latency is the edge's.",
            "s",
            (store_quantile(0.99), "{{edge}}"),
        ),
        Panel.of(
            "Connections",
            "Open connections by listener; outgoing ones have names of their own.",
            "short",
            (f"sum by ($WHOSE, edge, listener) (penstock_connections{{{ITS}}})", "{{edge}} {{listener}}"),
        ),
        Panel.of(
            "New connections",
            "Accepted or dialled.",
            "cps",
            (
                f"sum by ($WHOSE, edge, listener) (rate(penstock_connections_opened_total{{{ITS}}}{RATE}))",
                "{{edge}} {{listener}}",
            ),
        ),
        Panel.of(
            "Traffic",
            "Bytes on connections, by listener.",
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
            "Refused connections and requests by reason; the edges' pages list the reasons.",
            "reqps",
            (
                f"sum by ($WHOSE, edge, reason) (rate(penstock_refusals_total{{{ITS}}}{RATE}))",
                "{{edge}} {{reason}}",
            ),
        ),
        Panel.of(
            "Store errors",
            "Refusals and alarms of the store, by reason.",
            "reqps",
            (
                f"sum by ($WHOSE, edge, reason) (rate(penstock_store_events_total{{{ITS}}}{RATE}))",
                "{{edge}} {{reason}}",
            ),
        ),
        Panel.of(
            "Memory held for clients",
            "Incomplete input and unread replies, bounded by limits.",
            "bytes",
            (f"sum by ($WHOSE, edge, pod) (penstock_input_held_bytes{{{ITS}}})", "{{edge}} {{pod}} input"),
            (f"sum by ($WHOSE, edge, pod) (penstock_output_held_bytes{{{ITS}}})", "{{edge}} {{pod}} replies"),
        ),
        Panel.of(
            "Internal errors",
            "In the last hour; should be 0: see the log.",
            "short",
            (f"sum by ($WHOSE, edge) (increase(penstock_local_errors_total{{{ITS}}}[1h]))", "{{edge}}"),
        ),
        Panel.of(
            "CPU",
            "CPU cores used by a pod's processes, all workers together.",
            "short",
            (
                f"sum by ($WHOSE, pod, instance) ({ours(f'rate(process_cpu_seconds_total{{$EDGES}}{RATE})', ALIVE)})",
                "{{pod}} {{instance}}",
            ),
        ),
        Panel.of(
            "Memory",
            "Resident memory of all workers together; shared pages count for each.",
            "bytes",
            (
                f"sum by ($WHOSE, pod, instance) ({ours('process_resident_memory_bytes{$EDGES}', ALIVE)})",
                "{{pod}} {{instance}}",
            ),
        ),
        Panel.of(
            "Open files",
            "Fraction of the process's limit; each connection uses one. The highest of several workers.",
            "percentunit",
            (
                "max by ($WHOSE, pod, instance) "
                f"({ours('process_open_fds{$EDGES} / process_max_fds{$EDGES}', ALIVE)})",
                "{{pod}} {{instance}}",
            ),
        ),
        Panel.of(
            "Traces",
            "Spans by result if `tracing.endpoint` is set; `dropped` and `failed` spans are lost.",
            "cps",
            (each_second("trace_spans_total", "edge", "result"), "{{edge}} {{result}}"),
        ),
        Row("Text service"),
        Panel.of(
            "Text service: lines written",
            "MESSAGE lines to subscribers, and messages from neighbours.",
            "mps",
            (f"sum by ($WHOSE, pod) (rate(penstock_deliveries_total{{{ITS}}}{RATE}))", "{{pod}} delivered"),
            (
                f"sum by ($WHOSE, pod) (rate(penstock_link_messages_total{{{ITS}}}{RATE}))",
                "{{pod}} from neighbours",
            ),
        ),
        Panel.of(
            "Text service: subscribers and links",
            "Slow subscribers are served from the log. A neighbour that no pod follows is down.",
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
            "Messages transferred by mapping; blocked mappings wait.",
            "mps",
            (f"sum by ($WHOSE, mapping) (rate(penstock_sysv_messages_total{{{ITS}}}{RATE}))", "{{mapping}}"),
            (f"max by ($WHOSE, mapping) (penstock_sysv_waiting{{{ITS}}})", "{{mapping}} waits"),
        ),
        Panel.of(
            "System V: dead letters",
            "Messages that could not be transferred, by mapping and reason.",
            "mps",
            (each_second("sysv_dead_total", "mapping", "reason"), "{{mapping}} {{reason}}"),
        ),
        Panel.of(
            "System V: waits",
            "How often a mapping was blocked, by reason.",
            "cps",
            (each_second("sysv_waits_total", "mapping", "reason"), "{{mapping}} {{reason}}"),
        ),
    ),
)
