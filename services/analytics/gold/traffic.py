"""The table traffic."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from services.analytics.gold import histograms
from services.analytics.gold.expressions import ratio, shaped
from services.analytics.gold.peaks import peaks
from services.analytics.gold.refusals import total, with_refusals
from services.analytics.tables import SUMS, TRAFFIC
from services.store.model import PUT_S, WAIT_S

HOUR_S = 3600


def traffic(samples: DataFrame, objective: float) -> DataFrame:
    """Return the table traffic.

    Args:
        samples: samples without repeats.
        objective: share of puts that should be accepted.
    """
    keys = TRAFFIC.key_names()
    rows = samples.where(F.col("kind") == "queue")
    # older edges do not report refused puts
    puts = F.coalesce("refused_puts", total("refused"))
    sums = rows.groupBy(*keys).agg(
        *(F.sum(name).alias(name) for name in SUMS),
        F.sum(puts).alias("refused_puts"),
        *histograms.sums("put", len(PUT_S) + 1),
        *histograms.sums("wait", len(WAIT_S) + 1),
    )
    found = with_refusals(sums.join(peaks(rows, keys), keys), rows, keys)
    asked = F.col("in") + F.col("refused_puts")
    shares = found.withColumns(
        {
            "in_rate": F.col("in") / HOUR_S,
            "out_rate": F.col("out") / HOUR_S,
            "availability": ratio(F.col("in"), asked),
            "budget_used": ratio(F.col("refused_puts"), asked) / (1 - objective),
        }
    )
    return shaped(histograms.gathered(shares, put=PUT_S, wait=WAIT_S), TRAFFIC)
