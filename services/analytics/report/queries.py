"""SQL (DataFusion's) for the sums and lists of the report, on the gold tables of its hours.

Columns have the names of the report's fields (services/store/report); `at` is the hour of a row, 'YYYY-MM-DDTHH'.
"""

from __future__ import annotations

from collections.abc import Mapping

from services.store.model import CLASSES


def _sums(columns: Mapping[str, str]) -> str:
    """Return the sums of columns by the names that they get; 0 without rows."""
    return ", ".join(f'coalesce(sum("{column}"), 0) AS "{name}"' for name, column in columns.items())


def _merged(histogram: str) -> str:
    """Return the sum of the histograms of a column."""
    counts = ", ".join(f"coalesce(sum({histogram}[{number}]), 0)" for number in range(1, CLASSES + 1))
    return f"make_array({counts}) AS {histogram}"


# what the tables tell of a queue in an hour; a column that a table does not have is null
FLOWS = """
    SELECT at, domain, queue, added AS "in", delivered AS out, len_max, oldest_ms_max FROM depths
    UNION ALL BY NAME SELECT at, domain, queue, refused_all AS refused, put, wait FROM traffic
    UNION ALL BY NAME SELECT at, domain, queue, "count" AS dead FROM deaths
"""
OF_FLOWS = _sums({name: name for name in ("in", "out", "refused", "dead")})
REDRIVES = f"""
    {_sums({"redriven": "redriven", "died_again": "died_again"})},
    CASE WHEN sum(redriven) > 0 THEN 1 - least(1.0, sum(died_again)::double / sum(redriven)) END AS success
"""
REASONS = 'unnest(map_keys(refused)) AS name, unnest(map_values(refused)) AS "count"'
OF_DEPTHS = {
    "in": "added",
    "in_octets": "bytes_in",
    "out": "delivered",
    "acked": "acked",
    "acked_octets": "bytes_out",
    "returned": "returned",
    "died": "dead_all",
    "added": "added",
}
OF_TRAFFIC = {
    "out_octets": "out_octets",
    "refused": "refused_all",
    "refused_puts": "refused_puts",
    "sampled_in": "in",
    "sampled_out": "out",
}
OF_DEATHS = {"dead": "count", "dead_octets": "octets", "redriven": "redriven"}

# sums of tables, one row each
SUMS = {
    "depths": f"SELECT {_sums(OF_DEPTHS)} FROM depths",
    "traffic": f"SELECT {_sums(OF_TRAFFIC)}, {_merged('put')}, {_merged('wait')} FROM traffic",
    "deaths": f"SELECT {_sums(OF_DEATHS)}, {_merged('age')} FROM deaths",
    "redrives": f"SELECT {REDRIVES} FROM redrives",
}
HOURS = f"SELECT at, {OF_FLOWS} FROM ({FLOWS}) GROUP BY at"


def _counts(key: str, table: str) -> tuple[str, str]:
    return f'SELECT {key} AS name, sum("count") AS "count" FROM {table} GROUP BY 1', '"count" DESC, name'


# lists of the report, and their orders, in which no two rows are equal
LISTS = {
    "budget.queues": (
        f"""
        SELECT domain, queue, {_sums({"accepted": "in", "refused": "refused_puts"})} FROM traffic
        GROUP BY domain, queue HAVING sum(refused_puts) > 0
        """,
        "refused::double / (accepted + refused) DESC, refused DESC, domain, queue",
    ),
    "queues": (
        f"""
        SELECT domain, queue, {OF_FLOWS}, max(len_max) AS len_max, max(oldest_ms_max) AS oldest_ms_max,
            {_merged("put")}, {_merged("wait")}
        FROM ({FLOWS}) GROUP BY domain, queue
        """,
        'dead DESC, refused DESC, "in" DESC, out DESC, domain, queue',
    ),
    "refused": _counts("name", f"(SELECT {REASONS} FROM traffic)"),
    "deaths.by_reason": _counts("reason", "deaths"),
    "deaths.by_edge": _counts("edge", "deaths"),
    "deaths.by_origin": _counts("origin", "origins"),
    "failures": (
        # times are in microseconds; the example is the oldest one
        """
        SELECT domain, queue, reason, pattern, fingerprint, sum("count") AS "count",
            min("first")::bigint / 1000 AS first_ms, max("last")::bigint / 1000 AS last_ms,
            first_value(example_id ORDER BY "first", example_id) AS example_id,
            first_value(example ORDER BY "first", example_id) AS example
        FROM failures GROUP BY domain, queue, reason, pattern, fingerprint
        """,
        '"count" DESC, domain, queue, reason, pattern, fingerprint',
    ),
    "redrives.queues": (
        f"SELECT domain, queue, {REDRIVES} FROM redrives GROUP BY domain, queue",
        "died_again DESC, redriven DESC, domain, queue",
    ),
    "changes.top": (
        "SELECT at AS hour, domain, queue, metric, value, week_median, z, verdict FROM changes",
        "abs(z) DESC, hour, domain, queue, metric",
    ),
    "edges": (
        f"""
        SELECT sums.*, refused FROM (
            SELECT edge, max(processes) AS processes_max, max(connections_max) AS connections_max,
                {_sums({name: name for name in ("opened", "received_octets", "sent_octets")})}
            FROM edges GROUP BY edge
        ) AS sums LEFT JOIN (
            SELECT edge, array_agg(named_struct('name', name, 'count', "count") ORDER BY "count" DESC, name) AS refused
            FROM (
                SELECT edge, name, sum("count") AS "count" FROM (SELECT edge, {REASONS} FROM edges)
                GROUP BY edge, name
            ) GROUP BY edge
        ) AS reasons ON reasons.edge = sums.edge
        """,
        "opened DESC, edge",
    ),
}
