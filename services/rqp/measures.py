"""Declare the metrics of RQP."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "rqp"

PROTOCOL = Label("protocol", "2")  # rqp-mca, rqp-cast
REASON = Label("reason", "reasons, some 10")

OWNED = gauge(
    "penstock_rqp_owned_queues",
    "Transmission queues owned by this process",
    PROTOCOL,
    more="the sum over all edges of a store is the number of transmission queues",
)
STUCK = gauge(
    "penstock_rqp_stuck_queues", "Stuck transmission queues", PROTOCOL, more="an alarm if it stays above 0"
)
SENT = counter(
    "penstock_rqp_sent_messages_total",
    "Messages sent to a peer",
    PROTOCOL,
    more="confirmed, or UNRELIABLE",
)
FAILURES = counter(
    "penstock_rqp_send_failures_total",
    "Failed attempts to send, by reason",
    PROTOCOL,
    Label("reason", "reasons, some 20"),
    more="the labels of a queue's condition ([RQP/MCA](rqp-mca.md#when-messages-are-not-delivered), "
    "[RQP/cast](rqp-cast.md#when-messages-are-not-delivered))",
)
UNCONFIRMED = counter(
    "penstock_rqp_unconfirmed_messages_total",
    "Messages sent again after a missing confirmation; they may arrive twice",
    PROTOCOL,
)
LOST = counter(
    "penstock_rqp_lost_messages_total",
    "UNRELIABLE messages that were neither queued nor kept as dead letters",
    PROTOCOL,
)
CAST_UNANSWERED = counter(
    "penstock_rqp_cast_unanswered_total",
    "Requests without an answer, by reason",
    REASON,
    more="those of [3.2](../protos/rqp_cast.md)",
)
CAST_SESSIONS = counter(
    "penstock_rqp_cast_sessions_total",
    "Sessions of the receiving agent, by result",
    Label("end", "18"),
    more="`stored`, `duplicate`, `clash`, `gone`, `full`, `refused`, `unknown`; `truncated`, `timed_out`, `other_key`, "
    "`message_too_large` (damaged); `declined` (3.3), `connection_lost`, `data_lost`, `fault`, "
    "`timed_out_wait_for_approval`, `timed_out_wait_for_message`, `stopped` (nothing came)",
)
CAST_UNHEARD = counter(
    "penstock_rqp_cast_unheard_total",
    "Unexpected connections that were closed, by reason",
    REASON,
    more="`not_listed`, `not_asked`, `other_receiver`, `foreign_source`, `other_id`, `not_awaited` (1.1, 4.2), "
    "`foreign_peer` (1.2), `too_many_connections`",
)
CAST_FAULTS = counter(
    "penstock_rqp_cast_faults_total",
    "Invalid messages received, by reason",
    REASON,
    more="those of 2.1, and `no_message`: silence, or a broken connection",
)
CAST_UNBURIED = counter(
    "penstock_rqp_cast_unburied_total",
    "Damaged or unwanted messages that could not become dead letters",
    REASON,
)
CAST_EXCESS = counter(
    "penstock_rqp_cast_excess_bytes_total",
    "Bytes after the end of a message",
    more="includes messages that were too large or too late",
)
CAST_CLASHES = counter(
    "penstock_rqp_cast_id_clashes_total",
    "Ids reused with other content: an alarm",
    more="[2.3](../protos/rqp_cast.md)",
)
CAST_HELD = counter(
    "penstock_rqp_cast_held_messages_total",
    "Messages too old to be sent again, kept as dead letters: an alarm",
    more="reason `held` (4.2)",
)
CAST_UNCONFIRMED = counter(
    "penstock_rqp_cast_confirmations_lost_total", "END_TRANSMISSION_MSGs that could not be sent"
)
