"""All of a release on one page."""

from __future__ import annotations

from tools.dashboards.board import USUAL, Board, Panel

RATE = "[$__rate_interval]"

OVERVIEW = Board(
    "overview",
    "Overview",
    "Edges, the store and the operator, all together.",
    USUAL,
    (
        Panel.of(
            "Pods that take requests",
            "By edge; fewer than there are pods: some cannot use the store, or drain.",
            "short",
            ("sum by (edge) (penstock_ready{$EDGES})", "{{edge}}"),
        ),
        Panel.of(
            "Connections",
            "Open now, of clients and peers.",
            "short",
            ("sum by (edge) (penstock_connections{$EDGES})", "{{edge}}"),
        ),
        Panel.of(
            "Requests",
            "Answered; failed are also questions that found nothing.",
            "reqps",
            (f"sum by (edge, result) (rate(penstock_requests_total{{$EDGES}}{RATE}))", "{{edge}} {{result}}"),
        ),
        Panel.of(
            "Time to answer, 99 of 100",
            "From a request to its answer.",
            "s",
            (
                "histogram_quantile(0.99, sum by (edge, le) "
                f"(rate(penstock_request_seconds_bucket{{$EDGES}}{RATE})))",
                "{{edge}}",
            ),
        ),
        Panel.of(
            "Refusals",
            "Connections and requests, by reason.",
            "reqps",
            (f"sum by (edge, reason) (rate(penstock_refusals_total{{$EDGES}}{RATE}))", "{{edge}} {{reason}}"),
        ),
        Panel.of(
            "Traffic",
            "Octets on connections.",
            "Bps",
            (f"sum by (edge) (rate(penstock_received_bytes_total{{$EDGES}}{RATE}))", "{{edge}} in"),
            (f"sum by (edge) (rate(penstock_sent_bytes_total{{$EDGES}}{RATE}))", "{{edge}} out"),
        ),
        Panel.of(
            "Messages in queues",
            "Of all queues of the store, as the operator finds them.",
            "short",
            ("sum(max by (namespace, queue) (penstock_queue_ready_messages{$OPERATOR}))", "ready"),
            ("sum(max by (namespace, queue) (penstock_queue_in_flight_messages{$OPERATOR}))", "in flight"),
        ),
        Panel.of(
            "Dead letters",
            "That there are, in all queues of the store.",
            "short",
            ("sum(max by (namespace, queue) (penstock_queue_dead_messages{$OPERATOR}))", "dead"),
        ),
        Panel.of(
            "Oldest message",
            "The age of the oldest that is not settled, of all queues.",
            "s",
            ("max(penstock_queue_oldest_age_seconds{$OPERATOR})", "oldest"),
        ),
        Panel.of(
            "Held for clients",
            "Bounded by limits.",
            "bytes",
            ("sum by (edge) (penstock_input_held_bytes{$EDGES})", "{{edge}} unfinished input"),
            ("sum by (edge) (penstock_output_held_bytes{$EDGES})", "{{edge}} unread replies"),
        ),
        Panel.of(
            "What the store refused",
            "Refusals and alarms of the store.",
            "reqps",
            (f"sum by (reason) (rate(penstock_store_events_total{{$EDGES}}{RATE}))", "{{reason}}"),
        ),
        Panel.of(
            "Memory of the store",
            "Of all its servers. From 75 % of what each may use, it takes no more messages.",
            "bytes",
            ("max by (namespace) (penstock_store_used_bytes{$OPERATOR})", "{{namespace}} used"),
            ("max by (namespace) (penstock_store_limit_bytes{$OPERATOR})", "{{namespace}} limit"),
        ),
        Panel.of(
            "Transmission queues",
            "Queues whose messages go to other systems, and those that get nothing through.",
            "short",
            ("sum by (protocol) (penstock_rqp_owned_queues{$EDGES})", "{{protocol}}"),
            ("sum by (protocol) (penstock_rqp_stuck_queues{$EDGES})", "{{protocol}} stuck"),
        ),
        Panel.of(
            "The ring",
            "Leaders of a group sum up to 1.",
            "short",
            ("sum(penstock_ring_leader{$EDGES})", "leaders"),
            ("sum(penstock_ring_predecessor{$EDGES})", "with a predecessor"),
            ("sum(penstock_ring_successor{$EDGES})", "with a successor"),
        ),
        Panel.of(
            "Text service",
            "Subscribers and links.",
            "short",
            ("sum(penstock_subscriptions{$EDGES})", "subscriptions"),
            ("sum(penstock_slow_subscribers{$EDGES})", "slow subscribers"),
            ("sum(penstock_links_following{$EDGES})", "neighbours followed"),
        ),
        Panel.of(
            "Resources",
            "Queues, Peers and Redrives by the reason of Ready.",
            "short",
            ("sum by (kind, reason) (penstock_operator_resources{$OPERATOR})", "{{kind}} {{reason}}"),
        ),
    ),
)
