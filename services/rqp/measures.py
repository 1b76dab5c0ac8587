"""What RQP counts (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "rqp"

PROTOCOL = Label("protocol", "2")  # rqp-mca, rqp-cast
REASON = Label("reason", "reasons, some 10")

OWNED = gauge(
    "penstock_rqp_owned_queues",
    "Transmission queues of this process",
    PROTOCOL,
    more="summed over all edges of a store, those that there are",
)
STUCK = gauge(
    "penstock_rqp_stuck_queues", "Of them, those whose condition is bad", PROTOCOL, more="alarm on it"
)
SENT = counter(
    "penstock_rqp_sent_messages_total",
    "Messages that got through to a peer",
    PROTOCOL,
    more="confirmed, or UNRELIABLE and sent",
)
FAILURES = counter(
    "penstock_rqp_send_failures_total",
    "Attempts that did not get through, by reason",
    PROTOCOL,
    Label("reason", "reasons, some 20"),
    more="the words of a queue's [condition](rqp.md#when-nothing-gets-through)",
)
UNCONFIRMED = counter(
    "penstock_rqp_unconfirmed_messages_total",
    "Sent, not confirmed, and sent again: they may arrive twice",
    PROTOCOL,
)
LOST = counter(
    "penstock_rqp_lost_messages_total",
    "UNRELIABLE ones neither put into a queue nor into its dead letters",
    PROTOCOL,
)
CAST_UNANSWERED = counter(
    "penstock_rqp_cast_unanswered_total",
    "Questions that got no answer, by reason",
    REASON,
    more="those of [3.2](../protos/rqp_cast.md)",
)
CAST_SESSIONS = counter(
    "penstock_rqp_cast_sessions_total",
    "Sessions of the receiving agent, by end",
    Label("end", "18"),
    more="`stored`, `duplicate`, `clash`, `gone`, `full`, `refused`, `unknown`; `truncated`, `timed_out`, `other_key`, "
    "`message_too_large` (damaged); `declined` (3.3), `connection_lost`, `data_lost`, `fault`, "
    "`timed_out_wait_for_approval`, `timed_out_wait_for_message`, `stopped` (nothing came)",
)
CAST_UNHEARD = counter(
    "penstock_rqp_cast_unheard_total",
    "Connections that were closed, as nobody waited for them",
    REASON,
    more="`not_listed`, `not_asked`, `other_receiver`, `foreign_source`, `other_id`, `not_awaited` (1.1, 4.2), "
    "`foreign_peer` (1.2), `too_many_connections`",
)
CAST_FAULTS = counter(
    "penstock_rqp_cast_faults_total",
    "What came and was no message, by reason",
    REASON,
    more="those of 2.1, and `no_message`: silence, or a broken connection",
)
CAST_UNBURIED = counter(
    "penstock_rqp_cast_unburied_total", "Damaged or unwanted messages that no dead letters took", REASON
)
CAST_EXCESS = counter(
    "penstock_rqp_cast_excess_bytes_total",
    "Octets behind the end of a message",
    more="and of those too large or too late",
)
CAST_CLASHES = counter(
    "penstock_rqp_cast_id_clashes_total",
    "Ids that came again with other content: an alarm",
    more="[2.3](../protos/rqp_cast.md)",
)
CAST_HELD = counter(
    "penstock_rqp_cast_held_messages_total",
    "Too old to be repeated, and put with the dead letters: an alarm",
    more="as `held` (4.2)",
)
CAST_UNCONFIRMED = counter(
    "penstock_rqp_cast_confirmations_lost_total", "END_TRANSMISSION_MSGs that could not be sent"
)
