"""What a ring's node counts (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "ring"

KIND = Label("kind", "2")
TYPE = Label("type", "2")

USERS = counter(
    "penstock_ring_users_total",
    "What became of USER messages",
    Label("what", "13"),
    more="`passed_on`, `delivered`, `buried` (the inbox took nothing: its dead letters), `served`, `settled`, `asked`, "
    "`timed_out`, `answered`, `late`, `came_back`, `taken_off`, `begun`; `unsafe`: the store did not take it, so it "
    "comes again",
)
DROPPED = counter(
    "penstock_ring_users_dropped_total",
    "USER messages taken off with nothing done",
    Label("why", "reasons of ring.md 5.5"),
    more="by the labels of [the protocol, 5.5](../protos/ring.md)",
)
LEADER = gauge(
    "penstock_ring_leader", "1 while the node leads its ring", more="the leaders of a group sum up to 1"
)
LED = gauge(
    "penstock_ring_led",
    "1 while it knows of somebody who leads its ring",
    more="itself, or who was heard to within `times.confirm_s` (130 s); alarm if it is 0 for minutes",
)
PREDECESSOR = gauge(
    "penstock_ring_predecessor", "1 while it has a predecessor", more="alarm if it is 0 for minutes"
)
SUCCESSOR = gauge(
    "penstock_ring_successor", "1 while it has a successor", more="alarm if it is 0 for minutes"
)
MEMBERS = gauge("penstock_ring_members", "Other nodes that it has heard of lately", more="in the last 650 s")
BREAKS = counter(
    "penstock_ring_breaks_total",
    "Links lost",
    Label("side", "3"),
    Label("reason", "reasons, some 20"),
    more="`inbound`, `outbound` or `both`, and why: `closed` (by the neighbour), `reset`, `ack_timeout`, `silence`, "
    "`hung` (no proposal comes around), `forced` (BreakLinkForced), `vain` (another node waits in vain), "
    "`other_ring` (found: they merge), `no_leader`, `stopping`, `store` (it refuses), `same_name` (another process has "
    "the name), the labels of "
    "[2.5 and 2.7](../protos/ring.md), `other`. `penstock ring status` has the last one in words",
)
DIALS = counter(
    "penstock_ring_dials_total",
    "Attempts to reach a successor",
    Label("result", "3"),
    more="`connected`, `failed`, `not_allowed`",
)
BEACONS_SENT = counter("penstock_ring_beacons_sent_total", "Beacons sent", KIND, more="`open` and `find`")
BEACONS_RECEIVED = counter(
    "penstock_ring_beacons_received_total", "Beacons that count", KIND, more="`open` and `find`"
)
BEACONS_REFUSED = counter(
    "penstock_ring_beacons_refused_total",
    "Datagrams that are no beacon, or not allowed",
    Label("reason", "reasons of ring.md 3.3"),
    more="by the labels of [the protocol, 3.3](../protos/ring.md), or `not_allowed`",
)
BEACONS_IGNORED = counter(
    "penstock_ring_beacons_ignored_total",
    "Beacons of other groups, and the node's own",
    Label("reason", "4"),
    more="`other_group`, `own`, `stopping`; `same_name`: another node has this one's name, which must not be",
)
BEACONS_UNSENT = counter(
    "penstock_ring_beacons_unsent_total",
    "Beacons that could not be sent",
    more="to an address; the log says why",
)
RECEIVED = counter(
    "penstock_ring_messages_received_total", "Messages of the predecessor", TYPE, more="`user` and `loop`"
)
SENT = counter(
    "penstock_ring_messages_sent_total", "Messages to the successor", TYPE, more="`user` and `loop`"
)
RETURNED = counter(
    "penstock_ring_messages_returned_total", "Unanswered when their link broke: they go again", TYPE
)
