"""The rows of an edge about the ring: what comes round, and how nodes find and lose each other."""

from __future__ import annotations

from tools.dashboards.board import ITS, Panel, Row, each_second, in_an_hour


def node(metric: str) -> str:
    return f"min by ($WHOSE, pod) (penstock_ring_{metric}{{{ITS}}})"


RING = (
    Row("Ring"),
    Panel.of(
        "Ring: what became of messages",
        "USER messages at the nodes, by what was done with them.",
        "mps",
        (each_second("ring_users_total", "what"), "{{what}}"),
        (each_second("ring_users_dropped_total", "why"), "dropped: {{why}}"),
    ),
    Panel.of(
        "Ring: neighbours",
        "Each node has two, and knows who leads.",
        "short",
        (node("predecessor"), "{{pod}} has a predecessor"),
        (node("successor"), "{{pod}} has a successor"),
        (node("led"), "{{pod}} is led"),
        (node("members"), "{{pod}} heard of"),
    ),
    Row("Ring, in detail"),
    Panel.of(
        "Ring: beacons",
        "Sent, and received of nodes of the same group.",
        "cps",
        (each_second("ring_beacons_sent_total", "kind"), "{{kind}} sent"),
        (each_second("ring_beacons_received_total", "kind"), "{{kind}} received"),
    ),
    Panel.of(
        "Ring: beacons that do not count",
        "By reason. `same_name`: another node has this one's name, which must not be.",
        "cps",
        (each_second("ring_beacons_ignored_total", "reason"), "ignored: {{reason}}"),
        (each_second("ring_beacons_refused_total", "reason"), "refused: {{reason}}"),
        (each_second("ring_beacons_unsent_total"), "could not be sent"),
    ),
    Panel.of(
        "Ring: attempts to reach a successor",
        "By what came of them.",
        "cps",
        (each_second("ring_dials_total", "result"), "{{result}}"),
    ),
    Panel.of(
        "Ring: links lost",
        "In the last hour, on which side and why.",
        "short",
        (in_an_hour("ring_breaks_total", "side", "reason"), "{{side}} {{reason}}"),
    ),
    Panel.of(
        "Ring: messages of links",
        "To the successor and of the predecessor; those returned were unanswered when their link broke, and go again.",
        "mps",
        (each_second("ring_messages_sent_total", "type"), "{{type}} sent"),
        (each_second("ring_messages_received_total", "type"), "{{type}} received"),
        (each_second("ring_messages_returned_total", "type"), "{{type}} returned"),
    ),
)
