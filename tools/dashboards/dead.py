"""The dashboard of dead letters and lost messages."""

from __future__ import annotations

from tools.dashboards.board import RATE, USUAL, Board, Panel, in_all
from tools.dashboards.queue import CHOSEN, DONE, ON, STANDS, risen

DEAD_NOW = f"max by ($WHOSE, queue) (penstock_queue_dead_messages{{{STANDS}}})"

DEAD = Board(
    "dead-letters",
    "Dead letters",
    "Undeliverable messages: `penstock dead list QUEUE` shows them, `penstock dead redrive QUEUE` redrives them.",
    (*USUAL, CHOSEN),
    (
        Panel.of(
            "Dead letters",
            "Present number, all queues.",
            "short",
            (in_all("penstock_queue_dead_messages", STANDS), "dead"),
        ),
        Panel.of(
            "By queue",
            "The ten queues with the most dead letters.",
            "short",
            (f"topk(10, {DEAD_NOW})", "{{queue}}"),
        ),
        Panel.of(
            "Died",
            "Messages that became dead letters, by queue, as reported by the operator.",
            "mps",
            (risen("died_messages"), "{{queue}}"),
        ),
        Panel.of(
            "Dropped",
            "Dead letters dropped in the last hour because their queue had reached its limit.",
            "short",
            (
                "max by ($WHOSE, queue) "
                f"(increase(penstock_queue_dead_trimmed_messages_total{{{STANDS}}}[1h]))",
                "{{queue}}",
            ),
        ),
        Panel.of(
            "Rejected",
            f"Dead letters that an edge rejected at once, instead of after failed deliveries. {ON}",
            "mps",
            (
                f"sum by ($WHOSE, queue) (rate(penstock_queue_rejected_messages_total{{{DONE}}}{RATE}))",
                "{{queue}}",
            ),
        ),
        Panel.of(
            "Returned",
            f"Messages returned to their queue; after too many failures they become dead letters. {ON}",
            "mps",
            (
                f"sum by ($WHOSE, queue) (rate(penstock_queue_returned_messages_total{{{DONE}}}{RATE}))",
                "{{queue}}",
            ),
        ),
        Panel.of(
            "Redriven",
            "Redriven dead letters in total, and those moved by Redrive resources.",
            "mps",
            (risen("redriven_messages"), "{{queue}}"),
            (f"sum by ($WHOSE) (rate(penstock_operator_redriven_total{{$CONTROL}}{RATE}))", "by Redrives"),
        ),
        Panel.of(
            "Purged, emptied, expired",
            "Purged dead letters, ready messages of purged queues, and messages that exceeded their TTL.",
            "mps",
            (risen("purged_messages"), "{{queue}} purged"),
            (risen("emptied_messages"), "{{queue}} emptied"),
            (risen("expired_messages"), "{{queue}} expired"),
        ),
        Panel.of(
            "Reasons",
            "The most frequent reasons in the latest analytics report.",
            "short",
            (
                "max by ($WHOSE, reason) (penstock_report_deaths{$CONTROL})",
                "{{reason}}",
            ),
            kind="bargauge",
        ),
        Panel.of(
            "RQP/cast: held messages and reused ids",
            "In the last hour. Held: their delivery is unknown. A reused id with other content is an alarm.",
            "short",
            ("sum by ($WHOSE) (increase(penstock_rqp_cast_held_messages_total{$EDGES}[1h]))", "held"),
            ("sum by ($WHOSE) (increase(penstock_rqp_cast_id_clashes_total{$EDGES}[1h]))", "id clashes"),
        ),
        Panel.of(
            "Neither delivered nor dead",
            "In the last hour: UNRELIABLE messages of RQP that no queue took, and messages trimmed by neighbours.",
            "short",
            (
                "sum by ($WHOSE, protocol) (increase(penstock_rqp_lost_messages_total{$EDGES}[1h]))",
                "lost: {{protocol}}",
            ),
            ("sum by ($WHOSE) (increase(penstock_link_gaps_total{$EDGES}[1h]))", "gaps of links"),
        ),
    ),
)
