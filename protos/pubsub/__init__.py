"""The text pub/sub service, line by line, as `protos/pubsub.md` numbers it: clients, and links between neighbours.

For clients: `grammar` is the language as expressions, `events` are what a connection yields, `lines` parses one line,
`connection` keeps one client's state, `replies` encodes and parses answers and deliveries, `requests` encodes a
client's requests, `text` makes any body fit into a line.

For neighbours: `origins` and `held` say which entries are meant, `link_events` are what a link yields, `link_lines` are
its lines, `link_readers` parses them, `link` keeps one link's state.

What it must not know: subscriptions, logs, stores; which identifiers are in use; when to ask a neighbour for what.
"""

from protos.pubsub.connection import Connection, Limits
from protos.pubsub.events import Event, Ping, Quit, Refused, Request, Send, Subscribe, Unsubscribe
from protos.pubsub.grammar import CRLF, LF, Charset, Pattern, Reason, is_message, parse_pattern
from protos.pubsub.held import MAX_INTERVALS
from protos.pubsub.link import LinkConnection, LinkLimits
from protos.pubsub.link_events import Beat, Entries, Follow, Gap, Have, Held, LinkEvent, Problem
from protos.pubsub.link_lines import (
    BEAT_INTERVAL_S,
    encode_beat,
    encode_entries,
    encode_follow,
    encode_gap,
    encode_have,
    encode_problem,
)
from protos.pubsub.origins import MAX_NUMBER, is_origin
from protos.pubsub.replies import (
    Error,
    Message,
    Ok,
    Reply,
    encode_error,
    encode_message,
    encode_ok,
    encode_reply,
    parse_reply,
)
from protos.pubsub.requests import (
    encode_ping,
    encode_quit,
    encode_request,
    encode_send,
    encode_subscribe,
    encode_unsubscribe,
)
from protos.pubsub.text import escape
from protos.runs import MAX_RUN

__all__ = [
    "BEAT_INTERVAL_S",
    "CRLF",
    "LF",
    "MAX_INTERVALS",
    "MAX_NUMBER",
    "MAX_RUN",
    "Beat",
    "Charset",
    "Connection",
    "Entries",
    "Error",
    "Event",
    "Follow",
    "Gap",
    "Have",
    "Held",
    "Limits",
    "LinkConnection",
    "LinkEvent",
    "LinkLimits",
    "Message",
    "Ok",
    "Pattern",
    "Ping",
    "Problem",
    "Quit",
    "Reason",
    "Refused",
    "Reply",
    "Request",
    "Send",
    "Subscribe",
    "Unsubscribe",
    "encode_beat",
    "encode_entries",
    "encode_error",
    "encode_follow",
    "encode_gap",
    "encode_have",
    "encode_message",
    "encode_ok",
    "encode_ping",
    "encode_problem",
    "encode_quit",
    "encode_reply",
    "encode_request",
    "encode_send",
    "encode_subscribe",
    "encode_unsubscribe",
    "escape",
    "is_message",
    "is_origin",
    "parse_pattern",
    "parse_reply",
]
