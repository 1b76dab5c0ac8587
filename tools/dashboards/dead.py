"""Dead letters: where they are, how they come about, and what goes wrong on the way."""

from __future__ import annotations

from tools.dashboards.board import RATE, USUAL, Board, Panel, in_all
from tools.dashboards.queue import CHOSEN, DONE, ON, STANDS, risen

DEAD_NOW = f"max by ($WHOSE, queue) (penstock_queue_dead_messages{{{STANDS}}})"

DEAD = Board(
    "dead-letters",
    "Dead letters",
    "Messages that nobody got: `penstock dead list QUEUE` shows them, `penstock dead redrive QUEUE --all` moves them.",
    (*USUAL, CHOSEN),
    (
        Panel.of(
            "Dead letters",
            "That there are, of all queues.",
            "short",
            (in_all("penstock_queue_dead_messages", STANDS), "dead"),
        ),
        Panel.of(
            "By queue",
            "The ten queues that have most.",
            "short",
            (f"topk(10, {DEAD_NOW})", "{{queue}}"),
        ),
        Panel.of(
            "Died",
            "Messages that became dead letters, by queue, as the operator sees them.",
            "mps",
            (risen("died_messages"), "{{queue}}"),
        ),
        Panel.of(
            "Dropped",
            "Dead letters that nobody has any more, in the last hour: their queue had more than it keeps.",
            "short",
            (
                "max by ($WHOSE, queue) "
                f"(increase(penstock_queue_dead_trimmed_messages_total{{{STANDS}}}[1h]))",
                "{{queue}}",
            ),
        ),
        Panel.of(
            "Rejected",
            f"Of them, those that an edge sent there at once, and did not only fail too often. {ON}",
            "mps",
            (
                f"sum by ($WHOSE, queue) (rate(penstock_queue_rejected_messages_total{{{DONE}}}{RATE}))",
                "{{queue}}",
            ),
        ),
        Panel.of(
            "Returned",
            f"Messages that went back into their queue: who fails too often dies. {ON}",
            "mps",
            (
                f"sum by ($WHOSE, queue) (rate(penstock_queue_returned_messages_total{{{DONE}}}{RATE}))",
                "{{queue}}",
            ),
        ),
        Panel.of(
            "Brought back",
            "Dead letters that were brought back, by whomever, and of them those that Redrive resources have.",
            "mps",
            (risen("redriven_messages"), "{{queue}}"),
            (f"sum by ($WHOSE) (rate(penstock_operator_redriven_total{{$CONTROL}}{RATE}))", "by Redrives"),
        ),
        Panel.of(
            "Purged, emptied, expired",
            "Dead letters that somebody purged, messages that were ready as somebody emptied their queue, and messages "
            "that died as their time was over.",
            "mps",
            (risen("purged_messages"), "{{queue}} purged"),
            (risen("emptied_messages"), "{{queue}} emptied"),
            (risen("expired_messages"), "{{queue}} expired"),
        ),
        Panel.of(
            "Reasons",
            "Of the period of the analytics job's last report, the most frequent.",
            "short",
            (
                "max by ($WHOSE, reason) (penstock_report_deaths{$CONTROL})",
                "{{reason}}",
            ),
            kind="bargauge",
        ),
        Panel.of(
            "RQP/cast: held, and ids that came again",
            "In the last hour. Held: nobody can say whether they arrived. An id with other content is an alarm.",
            "short",
            ("sum by ($WHOSE) (increase(penstock_rqp_cast_held_messages_total{$EDGES}[1h]))", "held"),
            ("sum by ($WHOSE) (increase(penstock_rqp_cast_id_clashes_total{$EDGES}[1h]))", "id clashes"),
        ),
        Panel.of(
            "Neither delivered nor dead",
            "In the last hour: UNRELIABLE messages over RQP that no queue took, and what neighbours had trimmed.",
            "short",
            (
                "sum by ($WHOSE, protocol) (increase(penstock_rqp_lost_messages_total{$EDGES}[1h]))",
                "lost: {{protocol}}",
            ),
            ("sum by ($WHOSE) (increase(penstock_link_gaps_total{$EDGES}[1h]))", "gaps of links"),
        ),
    ),
)
