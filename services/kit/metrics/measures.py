"""What every edge counts (docs/metrics.md)."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge, histogram

WHO = "every edge, the System V bridge"

LISTENER = Label("listener", "listeners and diallers")
REASON = Label("reason", "reasons, some 40")
OPERATION = Label("operation", "operations, some 10")
RESULT = Label("result", "2")

CONNECTIONS = gauge("penstock_connections", "Connections open now", LISTENER)
OPENED = counter("penstock_connections_opened_total", "Connections accepted and let in, or dialled", LISTENER)
RECEIVED = counter("penstock_received_bytes_total", "Bytes received from peers", LISTENER)
SENT = counter("penstock_sent_bytes_total", "Bytes written to peers", LISTENER)
CERTIFICATE_ENDS = gauge(
    "penstock_certificate_not_after_time_seconds",
    "Until when the certificate in use is valid",
    LISTENER,
    more="since 1970; where there is TLS with a certificate of ours",
    merge="livemin",
)
REFUSALS = counter(
    "penstock_refusals_total",
    "Connections and requests refused, by reason",
    REASON,
    more="the pages of the edges list the reasons",
)
REQUESTS = counter(
    "penstock_requests_total",
    "Requests answered",
    OPERATION,
    RESULT,
    more="`result`: `ok`, or `failed`, as which a question that found nothing counts, too",
)
REQUEST_SECONDS = histogram(
    "penstock_request_seconds",
    "Time from request to answer",
    OPERATION,
    more="without waits for a client that does not read; what begins with `ring_` waits for other nodes",
)
LOCAL_ERRORS = counter("penstock_local_errors_total", "Faults of our own: see the log", more="should stay 0")
INPUT_HELD = gauge(
    "penstock_input_held_bytes",
    "Unfinished input held",
    more="and what open transactions keep; bounded by `limits.max_input_bytes`",
)
OUTPUT_HELD = gauge(
    "penstock_output_held_bytes",
    "Output held that peers do not read",
    more="bounded by `limits.max_output_bytes`",
)
STORE_EVENTS = counter(
    "penstock_store_events_total",
    "Refusals and alarms of the store",
    REASON,
    more="the alarms `dataset_changed`, `store_rolled_back`, `new_generation`, `counter_mismatch` and `clock_stepped` "
    "deserve a look, and are there as 0 from the start",
)
STORE_CALL_SECONDS = histogram(
    "penstock_store_call_seconds",
    "Time from a call to the store until its answer",
    more="with its fsync, and with replicas where they are waited for; a call carries requests of many connections. "
    "What `penstock_request_seconds` has beside that is time of the edge's own",
)
READY = gauge(
    "penstock_ready", "1 if the edge takes requests", more="all of its workers, as `/readyz` has it"
)

# Of each queue, where `metrics.queues` is on.

QUEUE = Label("queue", "`metrics.max_queues` + 1")
WAIT_BUCKETS = (
    0.001,
    0.005,
    0.01,
    0.05,
    0.1,
    0.5,
    1.0,
    5.0,
    10.0,
    60.0,
    300.0,
    1800.0,
    3600.0,
    21_600.0,
    86_400.0,
)
IF_ON = "where `metrics.queues` is on"
IF_LATENCIES = (
    "where `metrics.queue_latencies` is on, too; counted in classes, so its sum is reckoned of their middles"
)

QUEUE_IN = counter(
    "penstock_queue_in_messages_total",
    "Messages that were put into the queue",
    QUEUE,
    more=f"{IF_ON}; whatever moves messages by itself, as redrives, is not among them",
)
QUEUE_IN_BYTES = counter(
    "penstock_queue_in_bytes_total", "Their octets", QUEUE, more=f"bodies and attributes; {IF_ON}"
)
QUEUE_OUT = counter(
    "penstock_queue_out_messages_total", "Messages that were given out", QUEUE, more=f"also again; {IF_ON}"
)
QUEUE_OUT_BYTES = counter(
    "penstock_queue_out_bytes_total", "Their octets", QUEUE, more=f"bodies and attributes; {IF_ON}"
)
QUEUE_ACKED = counter("penstock_queue_acked_messages_total", "Messages that were settled", QUEUE, more=IF_ON)
QUEUE_RETURNED = counter(
    "penstock_queue_returned_messages_total", "Messages that went back into the queue", QUEUE, more=IF_ON
)
QUEUE_REJECTED = counter(
    "penstock_queue_rejected_messages_total",
    "Messages that were sent to the dead letters",
    QUEUE,
    more=f"not those that had failed too often; {IF_ON}",
)
QUEUE_REFUSED = counter(
    "penstock_queue_refused_messages_total",
    "Messages that were not accepted, and other requests that the store refused",
    QUEUE,
    REASON,
    more=f"by the reasons of `penstock_store_events_total`; {IF_ON}",
)
QUEUE_PUT_SECONDS = histogram(
    "penstock_queue_put_seconds", "Time until a message was durable", QUEUE, more=IF_LATENCIES
)
QUEUE_WAIT_SECONDS = histogram(
    "penstock_queue_wait_seconds",
    "Age of a message when it was first given out",
    QUEUE,
    more=IF_LATENCIES,
    buckets=WAIT_BUCKETS,
)
