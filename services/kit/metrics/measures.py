"""Declare the metrics of every edge."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge, histogram

WHO = "every edge, the System V bridge"

LISTENER = Label("listener", "listeners and diallers")
REASON = Label("reason", "reasons, some 40")
OPERATION = Label("operation", "operations, some 10")
RESULT = Label("result", "2")

CONNECTIONS = gauge("penstock_connections", "Open connections", LISTENER)
OPENED = counter("penstock_connections_opened_total", "Connections accepted or dialled", LISTENER)
RECEIVED = counter("penstock_received_bytes_total", "Bytes received from peers", LISTENER)
SENT = counter("penstock_sent_bytes_total", "Bytes written to peers", LISTENER)
CERTIFICATE_ENDS = gauge(
    "penstock_certificate_not_after_time_seconds",
    "Expiry time of the certificate in use",
    LISTENER,
    more="Unix time; only with TLS and a certificate",
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
    more="`result`: `ok`, or `failed`, which includes requests that found nothing",
)
REQUEST_SECONDS = histogram(
    "penstock_request_seconds",
    "Time from request to reply",
    OPERATION,
    more="excludes waiting for slow clients; operations beginning with `ring_` include waiting for other nodes",
)
LOCAL_ERRORS = counter("penstock_local_errors_total", "Internal errors; see the log", more="should stay 0")
INPUT_HELD = gauge(
    "penstock_input_held_bytes",
    "Memory for incomplete input",
    more="includes open transactions; bounded by `limits.max_input_bytes`",
)
OUTPUT_HELD = gauge(
    "penstock_output_held_bytes",
    "Memory for output not yet read by peers",
    more="bounded by `limits.max_output_bytes`",
)
STORE_EVENTS = counter(
    "penstock_store_events_total",
    "Refusals and alarms of the store, by reason",
    REASON,
    more="investigate the alarms `dataset_changed`, `store_rolled_back`, `new_generation`, `counter_mismatch` and "
    "`clock_stepped`, which are exported as 0 from the start",
)
STORE_CALL_SECONDS = histogram(
    "penstock_store_call_seconds",
    "Time from a call to the store to its reply",
    more="includes fsync, and replicas if the ack level waits for them; a call carries requests of many connections. "
    "The rest of `penstock_request_seconds` is spent in the edge",
)
READY = gauge("penstock_ready", "1 if the edge is ready", more="all of its workers, as on `/readyz`")

# Metrics of each queue, if `metrics.queues` is on.

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
IF_ON = "if `metrics.queues` is on"
IF_LATENCIES = "if `metrics.queue_latencies` is on, too; the sum is estimated from the middles of the buckets"

QUEUE_IN = counter(
    "penstock_queue_in_messages_total",
    "Messages put into the queue",
    QUEUE,
    more=f"{IF_ON}; excludes redrives and other moves within the store",
)
QUEUE_IN_BYTES = counter(
    "penstock_queue_in_bytes_total", "Bytes put into the queue", QUEUE, more=f"bodies and attributes; {IF_ON}"
)
QUEUE_OUT = counter(
    "penstock_queue_out_messages_total", "Messages delivered", QUEUE, more=f"includes redeliveries; {IF_ON}"
)
QUEUE_OUT_BYTES = counter(
    "penstock_queue_out_bytes_total", "Bytes delivered", QUEUE, more=f"bodies and attributes; {IF_ON}"
)
QUEUE_ACKED = counter("penstock_queue_acked_messages_total", "Messages acknowledged", QUEUE, more=IF_ON)
QUEUE_RETURNED = counter(
    "penstock_queue_returned_messages_total", "Messages returned to the queue", QUEUE, more=IF_ON
)
QUEUE_REJECTED = counter(
    "penstock_queue_rejected_messages_total",
    "Messages rejected to the dead letters",
    QUEUE,
    more=f"excludes messages with too many failed deliveries; {IF_ON}",
)
QUEUE_REFUSED = counter(
    "penstock_queue_refused_messages_total",
    "Messages and other requests refused by the store",
    QUEUE,
    REASON,
    more=f"by the reasons of `penstock_store_events_total`; {IF_ON}",
)
QUEUE_PUT_SECONDS = histogram(
    "penstock_queue_put_seconds", "Time from a put to its acknowledgement", QUEUE, more=IF_LATENCIES
)
QUEUE_WAIT_SECONDS = histogram(
    "penstock_queue_wait_seconds",
    "Age of messages at their first delivery",
    QUEUE,
    more=IF_LATENCIES,
    buckets=WAIT_BUCKETS,
)
