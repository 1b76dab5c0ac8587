"""The overview dashboard of a release."""

from __future__ import annotations

from tools.dashboards.board import RATE, USUAL, Board, Panel, in_all
from tools.dashboards.control import CONSOLE, OPERATOR

OVERVIEW = Board(
    "overview",
    "Overview",
    "Edges, store, operator and console.",
    USUAL,
    (
        Panel.of(
            "Ready pods",
            "By edge. Pods are not ready while the store is unavailable or they drain.",
            "short",
            ("sum by ($WHOSE, edge) (penstock_ready{$EDGES})", "{{edge}}"),
        ),
        Panel.of(
            "Connections",
            "Open connections of clients and peers.",
            "short",
            ("sum by ($WHOSE, edge) (penstock_connections{$EDGES})", "{{edge}}"),
        ),
        Panel.of(
            "Requests",
            "By result; `failed` includes requests that found nothing.",
            "reqps",
            (
                f"sum by ($WHOSE, edge, result) (rate(penstock_requests_total{{$EDGES}}{RATE}))",
                "{{edge}} {{result}}",
            ),
        ),
        Panel.of(
            "Latency, p99",
            "From request to reply.",
            "s",
            (
                "histogram_quantile(0.99, sum by ($WHOSE, edge, le) "
                f"(rate(penstock_request_seconds_bucket{{$EDGES}}{RATE})))",
                "{{edge}}",
            ),
        ),
        Panel.of(
            "Refusals",
            "Connections and requests, by reason.",
            "reqps",
            (
                f"sum by ($WHOSE, edge, reason) (rate(penstock_refusals_total{{$EDGES}}{RATE}))",
                "{{edge}} {{reason}}",
            ),
        ),
        Panel.of(
            "Traffic",
            "Bytes on connections.",
            "Bps",
            (f"sum by ($WHOSE, edge) (rate(penstock_received_bytes_total{{$EDGES}}{RATE}))", "{{edge}} in"),
            (f"sum by ($WHOSE, edge) (rate(penstock_sent_bytes_total{{$EDGES}}{RATE}))", "{{edge}} out"),
        ),
        Panel.of(
            "Messages in queues",
            "All queues of the store, as reported by the operator.",
            "short",
            (in_all("penstock_queue_ready_messages", "$CONTROL"), "ready"),
            (in_all("penstock_queue_in_flight_messages", "$CONTROL"), "in flight"),
        ),
        Panel.of(
            "Dead letters",
            "Present number, all queues of the store.",
            "short",
            (in_all("penstock_queue_dead_messages", "$CONTROL"), "dead"),
        ),
        Panel.of(
            "Oldest message",
            "Age of the oldest unacknowledged message of all queues.",
            "s",
            ("max by ($WHOSE) (penstock_queue_oldest_age_seconds{$CONTROL})", "oldest"),
        ),
        Panel.of(
            "Memory held for clients",
            "Bounded by limits.",
            "bytes",
            ("sum by ($WHOSE, edge) (penstock_input_held_bytes{$EDGES})", "{{edge}} incomplete input"),
            ("sum by ($WHOSE, edge) (penstock_output_held_bytes{$EDGES})", "{{edge}} unread replies"),
        ),
        Panel.of(
            "Store errors",
            "Refusals and alarms of the store.",
            "reqps",
            (f"sum by ($WHOSE, reason) (rate(penstock_store_events_total{{$EDGES}}{RATE}))", "{{reason}}"),
        ),
        Panel.of(
            "Memory of the store",
            "All servers of the store. Above 75 % of its limit, a server accepts no more messages.",
            "bytes",
            ("max by ($WHOSE) (penstock_store_used_bytes{$CONTROL})", "used"),
            ("max by ($WHOSE) (penstock_store_limit_bytes{$CONTROL})", "limit"),
        ),
        Panel.of(
            "Transmission queues",
            "Queues whose messages are sent to other systems, and those that are stuck.",
            "short",
            ("sum by ($WHOSE, protocol) (penstock_rqp_owned_queues{$EDGES})", "{{protocol}}"),
            ("sum by ($WHOSE, protocol) (penstock_rqp_stuck_queues{$EDGES})", "{{protocol}} stuck"),
        ),
        Panel.of(
            "The ring",
            "A group has one leader.",
            "short",
            ("sum by ($WHOSE) (penstock_ring_leader{$EDGES})", "leaders"),
            ("sum by ($WHOSE) (penstock_ring_predecessor{$EDGES})", "with a predecessor"),
            ("sum by ($WHOSE) (penstock_ring_successor{$EDGES})", "with a successor"),
        ),
        Panel.of(
            "Text service",
            "Subscribers and links.",
            "short",
            ("sum by ($WHOSE) (penstock_subscriptions{$EDGES})", "subscriptions"),
            ("sum by ($WHOSE) (penstock_slow_subscribers{$EDGES})", "slow subscribers"),
            ("sum by ($WHOSE) (penstock_links_following{$EDGES})", "neighbours followed"),
        ),
        Panel.of(
            "Resources",
            "Queues, Peers and Redrives by reason of the condition Ready.",
            "short",
            ("sum by ($WHOSE, kind, reason) (penstock_operator_resources{$CONTROL})", "{{kind}} {{reason}}"),
        ),
        Panel.of(
            "Versions",
            "Pods by version; two during an upgrade.",
            "short",
            ("sum by ($WHOSE, version) (penstock_build_info{$CONTROL})", "{{version}}"),
        ),
        *OPERATOR,
        *CONSOLE,
    ),
)
