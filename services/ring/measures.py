"""Metrics of a ring node (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "ring"

KIND = Label("kind", "2")
TYPE = Label("type", "2")

USERS = counter(
    "penstock_ring_users_total",
    "USER messages by outcome",
    Label("what", "13"),
    more="`passed_on`, `delivered`, `buried` (refused by the inbox: its dead letters), `served`, `settled`, `asked`, "
    "`timed_out`, `answered`, `late`, `came_back`, `taken_off`, `begun`; `unsafe`: not stored, so the "
    "predecessor sends it again",
)
DROPPED = counter(
    "penstock_ring_users_dropped_total",
    "USER messages removed from the ring without effect",
    Label("why", "reasons of ring.md 5.5"),
    more="by the labels of [the protocol, 5.5](../protos/ring.md)",
)
LEADER = gauge("penstock_ring_leader", "1 while the node leads its ring", more="the sum over a group is 1")
LED = gauge(
    "penstock_ring_led",
    "1 while the node knows the leader of its ring",
    more="itself, or a leader heard within `times.confirm_s` (130 s); alert if it is 0 for minutes",
)
PREDECESSOR = gauge(
    "penstock_ring_predecessor", "1 while the node has a predecessor", more="alert if it is 0 for minutes"
)
SUCCESSOR = gauge(
    "penstock_ring_successor", "1 while the node has a successor", more="alert if it is 0 for minutes"
)
MEMBERS = gauge("penstock_ring_members", "Other nodes heard of recently", more="in the last 650 s")
BREAKS = counter(
    "penstock_ring_breaks_total",
    "Links lost",
    Label("side", "3"),
    Label("reason", "reasons, some 20"),
    more="`inbound`, `outbound` or `both`, and the reason: `closed` (by the neighbour), `reset`, `ack_timeout`, "
    "`silence`, `hung` (no proposal comes around), `forced` (BreakLinkForced), `vain` (another node waits in vain), "
    "`other_ring` (found: the rings merge), `no_leader`, `stopping`, `store` (it refuses), `same_name` (another "
    "process has the name), the labels of [2.5 and 2.7](../protos/ring.md), `other`. `penstock ring status` shows the "
    "last one as text",
)
DIALS = counter(
    "penstock_ring_dials_total",
    "Attempts to reach a successor",
    Label("result", "3"),
    more="`connected`, `failed`, `not_allowed`",
)
BEACONS_SENT = counter("penstock_ring_beacons_sent_total", "Beacons sent", KIND, more="`open` and `find`")
BEACONS_RECEIVED = counter(
    "penstock_ring_beacons_received_total", "Beacons accepted", KIND, more="`open` and `find`"
)
BEACONS_REFUSED = counter(
    "penstock_ring_beacons_refused_total",
    "Datagrams refused: no valid beacon, or not allowed",
    Label("reason", "reasons of ring.md 3.3"),
    more="by the labels of [the protocol, 3.3](../protos/ring.md), or `not_allowed`",
)
BEACONS_IGNORED = counter(
    "penstock_ring_beacons_ignored_total",
    "Beacons ignored: of other groups, or the node's own",
    Label("reason", "4"),
    more="`other_group`, `own`, `stopping`; `same_name`: another node has this node's name, a configuration error",
)
BEACONS_UNSENT = counter(
    "penstock_ring_beacons_unsent_total",
    "Beacons that could not be sent",
    more="per address; the log says why",
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
