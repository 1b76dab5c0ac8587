"""The rows of the edge dashboard for the ring."""

from __future__ import annotations

from tools.dashboards.board import ITS, Panel, Row, each_second, in_an_hour


def node(metric: str) -> str:
    """Return the query for a gauge of the nodes."""
    return f"min by ($WHOSE, pod) (penstock_ring_{metric}{{{ITS}}})"


RING = (
    Row("Ring"),
    Panel.of(
        "Ring: messages by outcome",
        "USER messages at the nodes, by outcome.",
        "mps",
        (each_second("ring_users_total", "what"), "{{what}}"),
        (each_second("ring_users_dropped_total", "why"), "dropped: {{why}}"),
    ),
    Panel.of(
        "Ring: neighbours",
        "Each node has two neighbours and knows a leader.",
        "short",
        (node("predecessor"), "{{pod}} has a predecessor"),
        (node("successor"), "{{pod}} has a successor"),
        (node("led"), "{{pod}} knows a leader"),
        (node("members"), "{{pod}} known nodes"),
    ),
    Row("Ring, in detail"),
    Panel.of(
        "Ring: beacons",
        "Sent, and received from nodes of the same group.",
        "cps",
        (each_second("ring_beacons_sent_total", "kind"), "{{kind}} sent"),
        (each_second("ring_beacons_received_total", "kind"), "{{kind}} received"),
    ),
    Panel.of(
        "Ring: ignored beacons",
        "By reason. `same_name`: another node uses this node's name, a configuration error.",
        "cps",
        (each_second("ring_beacons_ignored_total", "reason"), "ignored: {{reason}}"),
        (each_second("ring_beacons_refused_total", "reason"), "refused: {{reason}}"),
        (each_second("ring_beacons_unsent_total"), "could not be sent"),
    ),
    Panel.of(
        "Ring: connection attempts to a successor",
        "By result.",
        "cps",
        (each_second("ring_dials_total", "result"), "{{result}}"),
    ),
    Panel.of(
        "Ring: links lost",
        "In the last hour, by side and reason.",
        "short",
        (in_an_hour("ring_breaks_total", "side", "reason"), "{{side}} {{reason}}"),
    ),
    Panel.of(
        "Ring: messages on links",
        "To the successor and from the predecessor; returned ones were unanswered when the link broke.",
        "mps",
        (each_second("ring_messages_sent_total", "type"), "{{type}} sent"),
        (each_second("ring_messages_received_total", "type"), "{{type}} received"),
        (each_second("ring_messages_returned_total", "type"), "{{type}} returned"),
    ),
)
