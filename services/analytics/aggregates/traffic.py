"""Tables traffic and edges."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from services.analytics.aggregates.samples import SLOT_MS, slot, with_refusals
from services.analytics.histograms import merged, quantile
from services.analytics.tables import EDGES, QUANTILES, SUMS, TRAFFIC
from services.store.buckets import CLASSES, PUT_S, WAIT_S

HOUR_S = 3600


def traffic(samples: DataFrame, objective: float) -> DataFrame:
    """samples: without repeats."""
    of_queues, keys = samples.filter("kind = 'queue'"), TRAFFIC.key_names()
    sums = of_queues.groupBy(*keys).agg(
        *[F.sum(name).alias(name) for name in SUMS],
        merged("put", CLASSES).alias("put"),
        merged("wait", CLASSES).alias("wait"),
    )
    found = with_refusals(sums.join(_peaks(of_queues, keys), keys), of_queues, keys)
    for name, bounds in {"put": PUT_S, "wait": WAIT_S}.items():
        quantiles = {f"{name}_{at}": quantile(F.col(name), bounds, share) for at, share in QUANTILES.items()}
        found = found.withColumns(quantiles)
    asked = F.col("in") + F.col("refused_all")
    return found.withColumns(
        {
            "in_rate": F.col("in") / HOUR_S,
            "out_rate": F.col("out") / HOUR_S,
            "availability": F.when(asked > 0, F.col("in") / asked),
            "budget_used": F.when(asked > 0, F.col("refused_all") / asked / F.lit(1 - objective)),
        }
    )


def _peaks(samples: DataFrame, keys: list[str]) -> DataFrame:
    """Of each 10 s the sum over all processes; the most of the hour, as messages in a second."""
    slots = samples.groupBy(*keys, slot().alias("slot")).agg(
        F.sum("in").alias("ins"), F.sum("out").alias("outs")
    )
    return slots.groupBy(*keys).agg(_rate("ins").alias("in_peak"), _rate("outs").alias("out_peak"))


def _rate(name: str) -> Column:
    return F.max(name) * 1000 / SLOT_MS


def edges(samples: DataFrame) -> DataFrame:
    """samples: without repeats."""
    of_edges, keys = samples.filter("kind = 'edge'"), EDGES.key_names()
    sums = of_edges.groupBy(*keys).agg(
        F.count_distinct("process").alias("processes"),
        *[F.sum(name).alias(name) for name in ("opened", "received_octets", "sent_octets")],
    )
    slots = of_edges.groupBy(*keys, slot().alias("slot"), "process").agg(F.max("connections").alias("open"))
    together = slots.groupBy(*keys, "slot").agg(F.sum("open").alias("open"))
    most = together.groupBy(*keys).agg(F.max("open").alias("connections_max"))
    return with_refusals(sums.join(most, keys), of_edges, keys).drop("refused_all")
