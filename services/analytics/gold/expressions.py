"""Expressions that several tables use."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from services.analytics.hours import HOUR
from services.analytics.tables import Table

OF_QUEUE = (*HOUR, "domain", "queue")
SLOT_MS = 10_000


def shaped(rows: DataFrame, table: Table) -> DataFrame:
    """Return exactly the columns of the table, in its types."""
    return rows.select([F.col(each.name).cast(each.type).alias(each.name) for each in table.columns])


def number_of(identifier: str) -> Column:
    """Return the number of an id as text that sorts as the number does; it may exceed 63 bits."""
    return F.lpad(F.substring_index(identifier, "-", -1), 20, "0")


def ms(time: str) -> Column:
    """Return a time in ms since 1970."""
    return F.unix_millis(F.col(time))


def quotient(number: Column, size: int) -> Column:
    """Return how many whole sizes a time in ms contains, rounded down."""
    return F.floor(number / size)


def ratio(number: Column, whole: Column) -> Column:
    """Return the quotient as a double, null where the divisor is 0."""
    return F.try_divide(number.cast("double"), whole.cast("double"))


def most_frequent(counts: DataFrame, top: int, *then: str) -> DataFrame:
    """Return the `top` rows of each queue and hour with the greatest `count`; ties are in order of `then`."""
    order = Window.partitionBy(*OF_QUEUE).orderBy(F.desc("count"), *then)
    return counts.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= top)
