"""Declare the statistics of a store and its queues."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "the operator, the console"

QUEUE = Label("queue", "named queues + 1")
AS = "when last polled; absent while the store is unavailable. Without names all queues are `_other`"

QUEUES = gauge("penstock_queues", "Queues in the store")
UNREAD = gauge(
    "penstock_queues_unread",
    "Queues that could not be read",
    more="damaged queues, and those on a shard that is down; the log has `queue_unread` or `queue_unreadable`",
)
READY = gauge("penstock_queue_ready_messages", "Messages ready for delivery", QUEUE, more=AS)
IN_FLIGHT = gauge("penstock_queue_in_flight_messages", "Messages delivered but not acknowledged", QUEUE)
DEAD = gauge("penstock_queue_dead_messages", "Dead letters", QUEUE)
BYTES = gauge("penstock_queue_bytes", "Bytes of messages, as counted for the queue's limits", QUEUE)
OLDEST = gauge(
    "penstock_queue_oldest_age_seconds",
    "Age of the oldest unacknowledged message",
    QUEUE,
    more="0 if there is none; for `_other` the oldest of all",
)
USED = gauge(
    "penstock_queue_used_ratio",
    "Used fraction of `maxLength` or `maxBytes`, whichever is higher",
    QUEUE,
    more="at 1 it refuses messages; 0 without limits or with `dead_letter_oldest`; for `_other` the fullest of all",
)
DIED = counter(
    "penstock_queue_died_messages_total",
    "Messages that became dead letters",
    QUEUE,
    more="since the process started to poll",
)
DEAD_TRIMMED = counter(
    "penstock_queue_dead_trimmed_messages_total",
    "Dead letters dropped because their queue had reached its limit",
    QUEUE,
    more="the oldest, beyond `deadLetter.maxLength`; excludes expired ones; since the process started to poll",
)
REDRIVEN = counter(
    "penstock_queue_redriven_messages_total",
    "Dead letters redriven",
    QUEUE,
    more="by source queue; since the process started to poll",
)
PURGED = counter(
    "penstock_queue_purged_messages_total",
    "Dead letters purged",
    QUEUE,
    more="since the process started to poll",
)
EMPTIED = counter(
    "penstock_queue_emptied_messages_total",
    "Ready messages purged",
    QUEUE,
    more="with `penstock queue purge` or the console; since the process started to poll",
)
EXPIRED = counter(
    "penstock_queue_expired_messages_total",
    "Messages that exceeded `messageTTL`",
    QUEUE,
    more="since the process started to poll",
)
DUPLICATES = counter(
    "penstock_queue_duplicates_total",
    "Repeated batches, commits and requests that were not carried out again",
    QUEUE,
    more="since the process started to poll",
)
FENCED = counter(
    "penstock_queue_fenced_messages_total",
    "Messages settled or returned after their lease had expired",
    QUEUE,
    more="since the process started to poll",
)

STORE_USED = gauge(
    "penstock_store_used_bytes",
    "Memory used by the store",
    more="sum of its primaries; absent if they do not report it",
)
STORE_LIMIT = gauge(
    "penstock_store_limit_bytes", "Memory limit of the store", more="`maxmemory`; absent without one"
)
STORE_FULLEST = gauge(
    "penstock_store_fullest_ratio",
    "Used fraction of the memory limit, for the fullest server",
    more="at 0.75 it accepts no more messages",
)

COPIES_LOST = counter(
    "penstock_link_copies_lost_total",
    "Copies of neighbours' messages lost because their queue is damaged",
    more="`copies_lost` of `penstock log show`; since the process started to poll",
)
