"""The table edges."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from services.analytics.gold.expressions import SLOT_MS, ms, quotient, shaped
from services.analytics.gold.refusals import with_refusals
from services.analytics.tables import EDGES

FLOWS = ("opened", "received_octets", "sent_octets")


def edges(samples: DataFrame) -> DataFrame:
    """Return the table edges. samples: samples without repeats."""
    keys = EDGES.key_names()
    rows = samples.where(F.col("kind") == "edge")
    flows = [F.sum(name).alias(name) for name in FLOWS]
    slot = quotient(ms("at"), SLOT_MS).alias("slot")
    by_process = rows.groupBy(*keys, slot, "process").agg(F.max("connections").alias("connections"), *flows)
    by_slot = by_process.groupBy(*keys, "slot").agg(
        F.sum("connections").alias("connections"), F.collect_set("process").alias("processes"), *flows
    )
    found = by_slot.groupBy(*keys).agg(
        F.max("connections").alias("connections_max"),
        F.size(F.array_distinct(F.flatten(F.collect_list("processes")))).alias("processes"),
        *flows,
    )
    return shaped(with_refusals(found, rows, keys), EDGES)
