"""The tables depths and redrives: states of queues, and increases of their counters between samples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.aggregates.grouping import Grouped, Numbers, codes, ids, in_order, numbers, plainly
from services.analytics.tables import COUNTERS, REDRIVES

HOUR_MS = 3_600_000
NEW_AFTER_MS = (
    600_000  # every queue is sampled at least every 5 minutes; one that first appears after twice that is new
)
OF_QUEUE = ["domain", "queue"]
STATES = ("len", "leased", "oldest_ms", "dead")
NEVER = np.iinfo(np.int64).max


class Depths:
    """States of queues in an hour's `depth` samples; differences also use the samples of the hour before.

    The first sample of a queue counts from 0 if the queue was created in the hour of the sample or the one before: if
    the sample says so; in samples of older versions, if its id changed or other queues were sampled long before.
    Otherwise it is only the base, as the earlier counts may belong to any hour. A counter that fell adds nothing.
    """

    def __init__(self) -> None:
        self._before: list[pa.Table] = []
        self._now: list[pa.Table] = []
        self._since = Grouped(["domain"], {"ms": "min"})

    def look(self, rows: pa.Table) -> None:
        """Note when sampling began in a domain, from samples of all queues of both hours."""
        self._since.add(pa.table({"domain": rows["domain"], "ms": ids(rows["id"])[0]}))

    def add(self, rows: pa.Table, *, is_before: bool) -> None:
        """Add samples of this share's queues."""
        ms, number = ids(rows["id"])
        kept = pa.table(
            {
                **{name: rows[name] for name in (*OF_QUEUE, "qid", "age_ms", *STATES, *COUNTERS)},
                "ms": ms,
                "number": number,
            }
        )
        (self._before if is_before else self._now).append(kept)

    def result(self) -> pa.Table:
        """Return the table depths."""
        looks = pa.concat_tables([*self._before, *self._now]).unify_dictionaries().combine_chunks()
        queues = codes(*(looks[name] for name in OF_QUEUE))
        order = in_order(queues, looks["ms"].to_numpy(), looks["number"].to_numpy())
        is_now = np.arange(len(looks)) >= sum(map(len, self._before))
        risen = _Rises(looks.take(pa.array(order)), queues[order], self._since.result()).table()
        return _summed(risen.filter(pa.array(is_now[order])))


class _Rises:
    """Increases of counters from sample to sample."""

    def __init__(self, looks: pa.Table, queues: Numbers, since: pa.Table) -> None:
        """Compare the samples, which are sorted by queue and time. since: when sampling began, by domain."""
        self._looks = looks
        self._has_before = np.r_[False, queues[1:] == queues[:-1]][: len(looks)]
        qid = codes(looks["qid"])
        is_of_one_life = self._has_before & (qid == np.r_[qid[:1], qid[:-1]])
        begun = dict(zip(since["domain"].to_pylist(), since["ms"].to_pylist(), strict=True))
        began = np.array([begun[each] for each in plainly(looks["domain"]).to_pylist()], np.int64)
        is_late = looks["ms"].to_numpy() - began > NEW_AFTER_MS
        says_so = looks["age_ms"].is_valid().to_numpy()
        self._is_same = is_of_one_life & ~says_so
        is_new = np.where(self._has_before, ~is_of_one_life, is_late)
        self._is_new = np.where(says_so, _is_young(looks), is_new)

    def table(self) -> pa.Table:
        """Return the samples with an increase for each counter, and whether a counter fell."""
        risen, fell = self._looks, np.zeros(len(self._looks), bool)
        for name in COUNTERS:
            now = numbers(self._looks[name])
            rise = now - np.r_[now[:1], now[:-1]]
            fell |= self._is_same & (rise < 0)
            more = np.where(self._is_same, np.maximum(rise, 0), np.where(self._is_new, now, 0))
            risen = risen.append_column(f"more_{name}", pa.array(more.astype(np.int64)))
        return risen.append_column("fell", pa.array(fell.astype(np.int64)))


def _is_young(looks: pa.Table) -> Numbers:
    """Return whether the queue was created in the hour of the sample or the one before."""
    ms = looks["ms"].to_numpy()
    made = ms - numbers(pc.fill_null(looks["age_ms"], 0))
    return np.asarray(ms // HOUR_MS - made // HOUR_MS <= 1)


def _summed(looks: pa.Table) -> pa.Table:
    more = [f"more_{name}" for name in COUNTERS]
    found = looks.group_by(OF_QUEUE, use_threads=False).aggregate(
        [
            *(([], "count_all"), ("len", "min"), ("len", "mean"), ("len", "max"), ("leased", "max")),
            *(("oldest_ms", "max"), ("dead", "last"), ("fell", "sum")),
            *((name, "sum") for name in more),
        ]
    )
    names = {"count_all": "samples", "oldest_ms_max": "oldest_ms_max", "fell_sum": "resets"}
    names |= {f"more_{name}_sum": name for name in COUNTERS}
    return found.rename_columns([names.get(name, name) for name in found.column_names])


def redrives(deaths: pa.Table, depths: pa.Table) -> pa.Table:
    """Return the table redrives, from the rows of an hour of the tables deaths and depths."""
    again = (
        deaths.filter(pc.greater(deaths["redriven"], 0)).group_by(OF_QUEUE).aggregate([("redriven", "sum")])
    )
    back = depths.filter(pc.greater(depths["redriven"], 0)).select([*OF_QUEUE, "redriven"])
    both = back.join(again.rename_columns([*OF_QUEUE, "died_again"]), OF_QUEUE, join_type="full outer")
    number, died = (pc.fill_null(both[name], 0).to_numpy() for name in ("redriven", "died_again"))
    failed = np.minimum(died / np.maximum(number, 1), 1.0)
    columns = {"redriven": number, "died_again": died, "success": pa.array(1 - failed, mask=number == 0)}
    found = pa.table({**{name: both[name] for name in OF_QUEUE}, **columns})
    return found.select([each.name for each in (*REDRIVES.keys, *REDRIVES.values)])
