"""Samples that were sent twice, as their first answer was lost: the first of two hours stays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from services.analytics.aggregates.grouping import Numbers, codes, ids, in_order

NAMED_BY = ["stream", "kind", "process", "n", "queue"]  # a repeat of a sample has the same


def suspects(samples: pa.Table) -> Numbers:
    """Which rows have a name that another one has, too. Nearly always none."""
    names = codes(*(samples[name] for name in NAMED_BY))
    order = np.argsort(names, kind="stable")
    same = np.flatnonzero(np.diff(names[order]) == 0)
    return np.unique(np.r_[order[same], order[same + 1]])


def repeats(doubtful: pa.Table) -> pa.Table:
    """stream, id of the rows that are not the first of their name."""
    names = codes(*(doubtful[name] for name in NAMED_BY))
    order = in_order(names, *ids(doubtful["id"]))
    ordered = names[order]
    again = order[1:][ordered[1:] == ordered[:-1]]
    return doubtful.take(pa.array(again)).select(["stream", "id"])
