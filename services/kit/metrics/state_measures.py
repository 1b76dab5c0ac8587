"""Define the metrics of a store's queues, and of the store itself (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "the operator, the console"

QUEUE = Label("queue", "most named + 1")
AS = "as of the last poll; absent while the store cannot be read. Without labels for queues, all are `_other`"

QUEUES = gauge("penstock_queues", "Number of queues")
UNREAD = gauge(
    "penstock_queues_unread",
    "Queues whose state cannot be read",
    more="damaged, or in a domain whose shard is unreachable; the log has `queue_unread` or `queue_unreadable`",
)
READY = gauge("penstock_queue_ready_messages", "Messages ready for delivery", QUEUE, more=AS)
IN_FLIGHT = gauge("penstock_queue_in_flight_messages", "Messages delivered and not settled", QUEUE)
DEAD = gauge("penstock_queue_dead_messages", "Dead letters", QUEUE)
BYTES = gauge("penstock_queue_bytes", "Octets of messages, as counted for the queue's limits", QUEUE)
OLDEST = gauge(
    "penstock_queue_oldest_age_seconds",
    "Age of the oldest unsettled message",
    QUEUE,
    more="0: none; of `_other`, the maximum",
)
USED = gauge(
    "penstock_queue_used_ratio",
    "Used share of the queue's limits, `maxLength` or `maxBytes`, whichever is higher",
    QUEUE,
    more="from 1 on, messages are refused; 0 without limits, or if the oldest are dropped; of `_other`, the maximum",
)
DIED = counter(
    "penstock_queue_died_messages_total",
    "Messages that became dead letters",
    QUEUE,
    more="since the process began to poll",
)
DEAD_TRIMMED = counter(
    "penstock_queue_dead_trimmed_messages_total",
    "Dead letters dropped because the queue had too many",
    QUEUE,
    more="the oldest beyond `deadLetter.maxLength`, without expired ones; since the process began to poll",
)
REDRIVEN = counter(
    "penstock_queue_redriven_messages_total",
    "Dead letters redriven",
    QUEUE,
    more="by the queue of the dead letters; since the process began to poll",
)
PURGED = counter(
    "penstock_queue_purged_messages_total",
    "Dead letters purged",
    QUEUE,
    more="since the process began to poll",
)
EMPTIED = counter(
    "penstock_queue_emptied_messages_total",
    "Ready messages purged",
    QUEUE,
    more="by `penstock queue purge` or the console; since the process began to poll",
)
EXPIRED = counter(
    "penstock_queue_expired_messages_total",
    "Messages that expired (`messageTTL`) before delivery",
    QUEUE,
    more="since the process began to poll",
)
DUPLICATES = counter(
    "penstock_queue_duplicates_total",
    "Batches, commits and requests repeated by clients, and not done again",
    QUEUE,
    more="since the process began to poll",
)
FENCED = counter(
    "penstock_queue_fenced_messages_total",
    "Messages settled or returned after their lease had ended",
    QUEUE,
    more="since the process began to poll",
)

STORE_USED = gauge(
    "penstock_store_used_bytes",
    "Memory used by the store",
    more="of all primaries together; absent if they do not report it",
)
STORE_LIMIT = gauge(
    "penstock_store_limit_bytes", "Memory limit of the store", more="`maxmemory`; absent without one"
)
STORE_FULLEST = gauge(
    "penstock_store_fullest_ratio",
    "Used share of the memory limit, of the fullest server",
    more="from 0.75 on, messages are refused",
)

COPIES_LOST = counter(
    "penstock_link_copies_lost_total",
    "Copies of neighbours' messages lost because of a damaged queue",
    more="`copies_lost` of `penstock log show`; since the process began to poll",
)
