"""A complete report of the analytics job for tests, with data in each part."""

from __future__ import annotations

from typing import Any

from services.store.report.report import VERSION, Report

NOW_MS = 1_764_000_000_000
COUNTS = (0, 3, 9, 20, 7, 4, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0)
TIMES = {"counts": COUNTS, "p50": 0.003, "p90": 0.02, "p99": 0.6}


def document(**fields: Any) -> dict[str, Any]:
    """Return the report as a JSON document."""
    orders = {"domain": "main", "queue": "orders"}
    of_queue = {"put_p50": 0.002, "put_p99": 0.04, "wait_p50": 0.1, "wait_p99": 7.5, "len_max": 90}
    failure = {
        **orders,
        **{"reason": "attempts", "pattern": "timeout after 0 ms", "fingerprint": "00ff00ff00ff00ff"},
        **{"count": 9, "first_ms": NOW_MS - 7_200_000, "last_ms": NOW_MS - 60_000},
        **{"example_id": "1763990000000-0", "example": "timeout after 30 ms"},
    }
    return {
        "version": VERSION,
        "run": "2025-11-24T16",
        "now_ms": NOW_MS,
        "period": {"first": "2025-11-23T17", "last": "2025-11-24T16", "hours": 24, "known": 2}
        | {"is_running": True},
        "totals": {
            **{"queues": 2, "in": 1200, "in_octets": 345_678, "out": 1100, "out_octets": 300_000},
            **{"acked": 1000, "returned": 50, "refused": 6, "dead": 12, "dead_octets": 480},
            **{"added": 1200, "died": 14, "acked_octets": 290_000, "sampled_in": 1188, "sampled_out": 1100},
            "difference": "Edges' samples cover 99 % of the messages published: the rest went through no edge.",
        },
        "budget": {
            **{"objective": 0.999, "asked": 1206, "refused": 6, "availability": 1200 / 1206},
            "used": 6 / 1206 / 0.001,
            "queues": [{**orders, "asked": 1000, "refused": 6, "availability": 0.994, "used": 6.0}],
        },
        "hours": [
            {"hour": "2025-11-24T15", "in": 700, "out": 600, "refused": 0, "dead": 2},
            {"hour": "2025-11-24T16", "in": 500, "out": 500, "refused": 6, "dead": 10},
        ],
        "queues": [
            {**orders, "in": 994, "out": 900, "refused": 6, "dead": 12, **of_queue, "oldest_ms_max": 90_000},
            {"domain": "main", "queue": "idle", "in": 206, "out": 200, "refused": 0, "dead": 0}
            | dict.fromkeys(("put_p50", "put_p99", "wait_p50", "wait_p99", "len_max", "oldest_ms_max")),
        ],
        "put": TIMES,
        "wait": TIMES,
        "refused": [{"name": "queue_full", "count": 6}],
        "deaths": {
            "by_reason": [{"name": "attempts", "count": 9}, {"name": "expired", "count": 3}],
            "by_edge": [{"name": "tmq", "count": 12}],
            "by_origin": [{"name": "tmq 10.0.0.1", "count": 12}],
            **{"redriven": 2, "age": TIMES},
        },
        "failures": [failure],
        "redrives": {
            **{"redriven": 8, "died_again": 2, "success": 0.75},
            "queues": [{**orders, "redriven": 8, "died_again": 2, "success": 0.75}],
        },
        "changes": {
            "count": 1,
            "top": [
                {**orders, "hour": "2025-11-24T16", "metric": "deaths", "value": 10.0}
                | {"week_median": 1.0, "z": 9.0, "verdict": "up"}
            ],
        },
        "edges": [
            {"edge": "tmq", "processes_max": 2, "connections_max": 30, "opened": 44}
            | {"received_octets": 500_000, "sent_octets": 450_000, "refused": [{"name": "busy", "count": 1}]}
        ],
        "records": {
            "dead": {"read": 13, "archived": 12, "quarantined": 1, "gone": 2},
            "samples": {"read": 720, "archived": 719, "quarantined": 1, "lost": 5},
        },
        "missing": {
            "lost_samples": 15,
            "lost_streams": 2,
            "quarantined_dead": 2,
            "quarantined_samples": 3,
            "late": 4,
        },
        "left_out": {"queues": 3},
        **fields,
    }


def report(**fields: Any) -> Report:
    return Report.model_validate(document(**fields))
