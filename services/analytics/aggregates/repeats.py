"""Find samples that were sent twice because the first answer was lost; the first of two hours is kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from services.analytics.aggregates.grouping import Numbers, codes, ids, in_order

NAMED_BY = ["stream", "kind", "process", "n", "queue"]  # the identity of a sample, which its repeats share


def suspects(samples: pa.Table) -> Numbers:
    """Return the rows whose identity occurs more than once; usually an empty result."""
    names = codes(*(samples[name] for name in NAMED_BY))
    order = np.argsort(names, kind="stable")
    same = np.flatnonzero(np.diff(names[order]) == 0)
    return np.unique(np.r_[order[same], order[same + 1]])


def repeats(doubtful: pa.Table) -> pa.Table:
    """Return stream and id of the rows that are not the first of their identity."""
    names = codes(*(doubtful[name] for name in NAMED_BY))
    order = in_order(names, *ids(doubtful["id"]))
    ordered = names[order]
    again = order[1:][ordered[1:] == ordered[:-1]]
    return doubtful.take(pa.array(again)).select(["stream", "id"])
