"""Declare the metrics of a ring node."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "ring"

KIND = Label("kind", "2")
TYPE = Label("type", "2")

USERS = counter(
    "penstock_ring_users_total",
    "USER messages by outcome",
    Label("what", "13"),
    more="`passed_on`, `delivered`, `buried` (the inbox refused it: a dead letter), `served`, `settled`, `asked`, "
    "`timed_out`, `answered`, `late`, `came_back`, `taken_off`, `begun`; `unsafe`: the store refused it, and "
    "it is sent again",
)
DROPPED = counter(
    "penstock_ring_users_dropped_total",
    "USER messages removed without an effect",
    Label("why", "reasons of ring.md 5.5"),
    more="by the labels of [the protocol, 5.5](../protos/ring.md)",
)
LEADER = gauge("penstock_ring_leader", "1 while the node leads its ring", more="a group has one leader")
LED = gauge(
    "penstock_ring_led",
    "1 while the node knows a leader of its ring",
    more="itself, or one heard within `times.confirm_s` (130 s); an alarm if it is 0 for minutes",
)
PREDECESSOR = gauge(
    "penstock_ring_predecessor", "1 while the node has a predecessor", more="an alarm if it is 0 for minutes"
)
SUCCESSOR = gauge(
    "penstock_ring_successor", "1 while the node has a successor", more="an alarm if it is 0 for minutes"
)
MEMBERS = gauge("penstock_ring_members", "Other nodes heard of in the last 650 s")
BREAKS = counter(
    "penstock_ring_breaks_total",
    "Links lost",
    Label("side", "3"),
    Label("reason", "reasons, some 20"),
    more="`inbound`, `outbound` or `both`, with the reason: `closed` (by the neighbour), `reset`, `ack_timeout`, "
    "`silence`, `hung` (no proposal comes around), `forced` (BreakLinkForced), `vain` (another node cannot connect), "
    "`other_ring` (found: they merge), `no_leader`, `stopping`, `store` (it is unavailable), `same_name` (another "
    "process has the name), the labels of [2.5 and 2.7](../protos/ring.md), `other`. `penstock ring "
    "status` shows the last one",
)
DIALS = counter(
    "penstock_ring_dials_total",
    "Connection attempts to a successor",
    Label("result", "3"),
    more="`connected`, `failed`, `not_allowed`",
)
BEACONS_SENT = counter("penstock_ring_beacons_sent_total", "Beacons sent", KIND, more="`open` and `find`")
BEACONS_RECEIVED = counter(
    "penstock_ring_beacons_received_total", "Beacons received and accepted", KIND, more="`open` and `find`"
)
BEACONS_REFUSED = counter(
    "penstock_ring_beacons_refused_total",
    "Datagrams that are not valid beacons, or not allowed",
    Label("reason", "reasons of ring.md 3.3"),
    more="by the labels of [the protocol, 3.3](../protos/ring.md), or `not_allowed`",
)
BEACONS_IGNORED = counter(
    "penstock_ring_beacons_ignored_total",
    "Beacons of other groups, and the node's own",
    Label("reason", "4"),
    more="`other_group`, `own`, `stopping`; `same_name`: another node has this node's name, a configuration error",
)
BEACONS_UNSENT = counter(
    "penstock_ring_beacons_unsent_total",
    "Beacons that could not be sent",
    more="per address; the log has the reason",
)
RECEIVED = counter(
    "penstock_ring_messages_received_total", "Messages from the predecessor", TYPE, more="`user` and `loop`"
)
SENT = counter(
    "penstock_ring_messages_sent_total", "Messages to the successor", TYPE, more="`user` and `loop`"
)
RETURNED = counter(
    "penstock_ring_messages_returned_total",
    "Messages unanswered when their link broke; they are sent again",
    TYPE,
)
