"""Declare the metrics of the System V bridge."""

from __future__ import annotations

from services.kit.measure import Label, counter, gauge

WHO = "the System V bridge"

MAPPING = Label("mapping", "mappings")

MESSAGES = counter("penstock_sysv_messages_total", "Messages transferred", MAPPING)
DEAD = counter(
    "penstock_sysv_dead_total",
    "Messages that became dead letters",
    MAPPING,
    Label("reason", "6"),
    more="`unencodable` ([2.4](sysv.md)), `fault` (2.7), `injured`, `unknown_key` (3.5), `too_large_for_peers`, "
    "`too_large_for_queue` (3.6)",
)
WAITS = counter(
    "penstock_sysv_waits_total",
    "Times a mapping was blocked",
    MAPPING,
    Label("reason", "reasons, some 20"),
    more="`local_queue_full`; `removed`, `missing`, `denied`, `refused`; `too_large`, `no_space`, `no_sync` (the "
    "journal's disk); `fault` (2.7, 3.8); or the store's reason, such as `queue_full`, `queue_paused`, "
    "`store_unavailable`",
)
WAITING = gauge("penstock_sysv_waiting", "1 while a mapping is blocked", MAPPING)
