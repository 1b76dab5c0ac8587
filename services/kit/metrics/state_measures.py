"""How the queues of a store stand, and the store itself (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "the operator, the console"

QUEUE = Label("queue", "most named + 1")
AS = "as the last look found it; not there while the store cannot be asked. Without names all of it is `_other`"

QUEUES = gauge("penstock_queues", "Queues that there are")
UNREAD = gauge(
    "penstock_queues_unread",
    "Queues of which nobody can say how they stand",
    more="damaged ones, and those of a domain whose shard is away; the log has `queue_unread`, or `queue_unreadable`",
)
READY = gauge("penstock_queue_ready_messages", "Messages that wait to be given out", QUEUE, more=AS)
IN_FLIGHT = gauge("penstock_queue_in_flight_messages", "Messages that are given out and not settled", QUEUE)
DEAD = gauge("penstock_queue_dead_messages", "Dead letters that there are", QUEUE)
BYTES = gauge("penstock_queue_bytes", "Octets of messages, as the limits of the queue count them", QUEUE)
OLDEST = gauge(
    "penstock_queue_oldest_age_seconds",
    "Age of the oldest message that is not settled",
    QUEUE,
    more="0: there is none; of `_other` the oldest of all",
)
USED = gauge(
    "penstock_queue_used_ratio",
    "Part of its bounds that is used, of `maxLength` or `maxBytes` whichever is nearer",
    QUEUE,
    more="from 1 on it refuses; 0 without bounds, and where the oldest make way; of `_other` the fullest of all",
)
DIED = counter(
    "penstock_queue_died_messages_total",
    "Messages that became dead letters",
    QUEUE,
    more="since the process began to look",
)
DEAD_TRIMMED = counter(
    "penstock_queue_dead_trimmed_messages_total",
    "Dead letters that were dropped, as their queue had more than it keeps",
    QUEUE,
    more="the oldest, beyond `deadLetter.maxLength`, not those that were too old; since the process began to look",
)
REDRIVEN = counter(
    "penstock_queue_redriven_messages_total",
    "Dead letters that were brought back, by whomever",
    QUEUE,
    more="of the queue whose dead letters they were; since the process began to look",
)
PURGED = counter(
    "penstock_queue_purged_messages_total",
    "Dead letters that somebody purged",
    QUEUE,
    more="since the process began to look",
)
EMPTIED = counter(
    "penstock_queue_emptied_messages_total",
    "Messages that were ready, and that somebody removed for good",
    QUEUE,
    more="`penstock queue purge`, and the console; since the process began to look",
)
EXPIRED = counter(
    "penstock_queue_expired_messages_total",
    "Messages whose time (`messageTTL`) was over before somebody took them",
    QUEUE,
    more="since the process began to look",
)
DUPLICATES = counter(
    "penstock_queue_duplicates_total",
    "Batches, commits and requests that came again and were not done again",
    QUEUE,
    more="since the process began to look",
)
FENCED = counter(
    "penstock_queue_fenced_messages_total",
    "Messages that somebody settled or returned who had them no more",
    QUEUE,
    more="since the process began to look",
)

STORE_USED = gauge(
    "penstock_store_used_bytes",
    "Memory that the store uses",
    more="of all its servers (primaries) together; not there where they do not say",
)
STORE_LIMIT = gauge(
    "penstock_store_limit_bytes", "Memory that the store may use", more="`maxmemory`; not there without one"
)
STORE_FULLEST = gauge(
    "penstock_store_fullest_ratio",
    "Part of its limit that is used, of the server that has used most of it",
    more="from 0.75 on it takes no more messages",
)

COPIES_LOST = counter(
    "penstock_link_copies_lost_total",
    "Copies of neighbours' messages that a damaged queue could not take",
    more="`copies_lost` of `penstock log show`; since the process began to look",
)
