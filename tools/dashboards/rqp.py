"""The rows of the edge dashboard for RQP."""

from __future__ import annotations

from tools.dashboards.board import Panel, Row, each_second

RQP = (
    Row("RQP"),
    Panel.of(
        "RQP: messages sent and failed attempts",
        "From transmission queues to other systems.",
        "mps",
        (each_second("rqp_sent_messages_total", "protocol"), "{{protocol}} sent"),
        (each_second("rqp_send_failures_total", "protocol", "reason"), "{{protocol}} {{reason}}"),
    ),
    Panel.of(
        "RQP: unconfirmed",
        "Messages that are sent again and may arrive twice, and confirmations of RQP/cast that could not be sent.",
        "mps",
        (each_second("rqp_unconfirmed_messages_total", "protocol"), "{{protocol}} sent again"),
        (each_second("rqp_cast_confirmations_lost_total"), "cast: confirmation lost"),
    ),
    Panel.of(
        "RQP/cast: sessions",
        "Of the receiving agent, by result.",
        "cps",
        (each_second("rqp_cast_sessions_total", "end"), "{{end}}"),
    ),
    Panel.of(
        "RQP/cast: no answer",
        "Requests without an answer, and unexpected connections, by reason.",
        "cps",
        (each_second("rqp_cast_unanswered_total", "reason"), "no answer: {{reason}}"),
        (each_second("rqp_cast_unheard_total", "reason"), "closed: {{reason}}"),
    ),
    Panel.of(
        "RQP/cast: invalid messages",
        "By reason; damaged or unwanted ones that could not become dead letters are lost.",
        "cps",
        (each_second("rqp_cast_faults_total", "reason"), "fault: {{reason}}"),
        (each_second("rqp_cast_unburied_total", "reason"), "not in dead letters: {{reason}}"),
    ),
    Panel.of(
        "RQP/cast: excess data",
        "Bytes after the end of a message, or of messages that were too large or too late.",
        "Bps",
        (each_second("rqp_cast_excess_bytes_total"), "excess"),
    ),
)
