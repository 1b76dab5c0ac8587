"""Compute the tables again in plain Python from the written entries, without code of the product."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from tests.redis_stream.entries import COUNTERS

PUT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
WAIT = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1800, 3600, 21600, 86400)
Entry = dict[str, Any]
Key = tuple[Any, ...]
Rows = dict[Key, dict[str, Any]]


def hour_of(ms: int) -> tuple[str, str]:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.strftime("%Y-%m-%d"), moment.strftime("%H")


def at(sample: Entry) -> int:
    return int(sample["id"].split("-")[0])


def grouped(entries: Iterable[Entry], key: Any) -> dict[Key, list[Entry]]:
    found: dict[Key, list[Entry]] = defaultdict(list)
    for entry in entries:
        found[key(entry)].append(entry)
    return found


def once(samples: list[Entry], kind: str) -> list[Entry]:
    """Return the samples without repeats, which have the same names (docs/store.md, "Samples")."""
    found: dict[Key, Entry] = {}
    for sample in samples:
        if sample["kind"] == kind:
            found.setdefault((sample["process"], sample["n"], sample.get("queue")), sample)
    return list(found.values())


def busiest(samples: list[Entry], way: str) -> float:
    """Return messages per second in the busiest 10 s, with each sample spread over its `ms`."""
    slots: dict[int, Fraction] = defaultdict(Fraction)
    for sample in samples:
        end, ms = at(sample), sample["ms"]
        for slot, share in Counter(moment // 10_000 for moment in range(end - ms, end)).items():
            slots[slot] += Fraction(sample[way] * share, ms)
    return float(max(slots.values()) / 10)


def refused_puts(sample: Entry) -> int:
    """Return the refused puts; all refusals if the edge does not report them."""
    return int(sample.get("refused_puts", sum(reasons([sample]).values())))


def reasons(samples: list[Entry]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for sample in samples:
        for word in filter(None, sample["refused"].split(",")):
            total[word.split("=")[0]] += int(word.split("=")[1])
    return dict(sorted(total.items()))


def quantile(counts: list[int], bounds: tuple[float, ...], share: float) -> float | None:
    rank, seen, low = sum(counts) * share, 0, 0.0
    for count, high in zip(counts, (*bounds, bounds[-1]), strict=True):
        if count and seen + count >= rank:
            return low + (high - low) * (rank - seen) / count
        seen, low = seen + count, high
    return None


def quantiles(name: str, counts: list[int], bounds: tuple[float, ...]) -> dict[str, float | None]:
    return {f"{name}_p{percent}": quantile(counts, bounds, percent / 100) for percent in (50, 90, 99)}


def traffic(samples: list[Entry], objective: float = 0.999) -> Rows:
    rows = {}
    key = lambda s: (*hour_of(at(s)), "main", s["queue"], s["edge"])  # noqa: E731
    for name, group in grouped(once(samples, "queue"), key).items():
        sums = ("in", "in_octets", "out", "out_octets", "acked", "returned", "rejected")
        row: dict[str, Any] = {each: sum(s[each] for s in group) for each in sums}
        for way in ("in", "out"):
            row[f"{way}_rate"] = row[way] / 3600
            row[f"{way}_peak"] = busiest(group, way)
        for histogram, bounds in (("put", PUT), ("wait", WAIT)):
            lists = [[int(count) for count in s[histogram].split(",")] for s in group]
            row[histogram] = [sum(column) for column in zip(*lists, strict=True)]
            row |= quantiles(histogram, row[histogram], bounds)
        row["refused"] = reasons(group)
        row["refused_all"] = sum(row["refused"].values())
        row["refused_puts"] = refused = sum(map(refused_puts, group))
        asked = row["in"] + refused
        row["availability"] = row["in"] / asked if asked else None
        row["budget_used"] = refused / asked / (1 - objective) if asked else None
        rows[name] = row
    return rows


def edges(samples: list[Entry]) -> Rows:
    rows = {}
    for name, group in grouped(once(samples, "edge"), lambda s: (*hour_of(at(s)), s["edge"])).items():
        slots: dict[int, dict[str, int]] = defaultdict(dict)
        for s in group:
            slot = slots[at(s) // 10_000]
            slot[s["process"]] = max(slot.get(s["process"], 0), s["connections"])
        rows[name] = {
            "processes": len({s["process"] for s in group}),
            "connections_max": max(sum(slot.values()) for slot in slots.values()),
            **{each: sum(s[each] for s in group) for each in ("opened", "received_octets", "sent_octets")},
            "refused": reasons(group),
        }
    return rows


def depths(samples: list[Entry]) -> Rows:
    """Compute the table for samples without long gaps, and queues that exist from the beginning."""
    looks = [s for s in samples if s["kind"] == "depth"]
    rows: Rows = {}
    before: dict[str, Entry] = {}
    for name, group in grouped(looks, lambda s: (*hour_of(at(s)), "main", s["queue"])).items():
        row = rows[name] = dict.fromkeys((*COUNTERS, "resets"), 0)
        for s in group:
            if "age_ms" in s and at(s) // 3_600_000 - (at(s) - s["age_ms"]) // 3_600_000 < 2:
                row |= {counter: row[counter] + s[counter] for counter in COUNTERS}
            elif last := before.get(s["queue"]):
                for counter in COUNTERS:
                    row[counter] += max(0, s[counter] - last[counter])
                row["resets"] += any(s[counter] < last[counter] for counter in COUNTERS)
            before[s["queue"]] = s
        lengths = [s["len"] for s in group]
        row |= {"samples": len(group), "len_min": min(lengths), "len_max": max(lengths)}
        row |= {"len_mean": sum(lengths) / len(lengths), "dead_last": group[-1]["dead"]}
        row |= {f"{each}_max": max(s[each] for s in group) for each in ("leased", "oldest_ms")}
    return rows


def deaths(letters: list[Entry]) -> Rows:
    rows = {}
    key = lambda d: (*hour_of(d["died"]), "main", d["queue"], d["reason"], d["origin"].split(" ")[0])  # noqa: E731
    for name, group in grouped(letters, key).items():
        age = [0] * 16
        for d in group:
            seconds = Fraction(d["died"] - d["enqueued"], 1000)
            age[sum(seconds > Fraction(str(bound)) for bound in WAIT)] += 1
        rows[name] = {
            "count": len(group),
            "octets": sum(len(d["body"]) for d in group),
            "age": age,
            **quantiles("age", age, WAIT),
            "acquired_mean": sum(d["acquired"] for d in group) / len(group),
            "redriven": sum(d.get("redriven", 0) > 0 for d in group),
        }
    return rows


def origins(letters: list[Entry], top: int) -> Rows:
    found: Rows = {}
    for queue, group in grouped(letters, lambda d: (*hour_of(d["died"]), "main", d["queue"])).items():
        counted = Counter(d["origin"] for d in group)
        for origin, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:top]:
            found[*queue, origin] = {"count": count}
    return found


def plain(text: str) -> str:
    text = re.sub(r"[0-9a-fA-F]{8,}(-[0-9a-fA-F]{4,})*|[0-9]+", "0", text)
    return re.sub(r"[ \t\n\x0b\f\r]+", " ", text)


def failures(letters: list[Entry], top: int) -> Rows:
    found: Rows = {}
    for queue, group in grouped(letters, lambda d: (*hour_of(d["died"]), "main", d["queue"])).items():
        alike = grouped(group, lambda d: (d["reason"], plain(d["error"])[:200], fingerprint(d["body"])))
        for name, same in sorted(alike.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:top]:
            first = min(same, key=lambda d: (d["died"], d["id"], d["error"]))
            times = [datetime.fromtimestamp(d["died"] / 1000, UTC) for d in same]
            found[*queue, *name] = {
                **{"count": len(same), "first": min(times), "last": max(times)},
                **{"example_id": first["id"], "example": first["error"][:200]},
            }
    return found


def fingerprint(body: str) -> str:
    return hashlib.sha256(plain(body).encode()).hexdigest()[:16]


def redrives(letters: list[Entry], of_depths: Rows) -> Rows:
    again = Counter((*hour_of(d["died"]), "main", d["queue"]) for d in letters if d.get("redriven"))
    back = {name: row["redriven"] for name, row in of_depths.items() if row["redriven"]}
    return {
        name: {
            "redriven": back.get(name, 0),
            "died_again": again.get(name, 0),
            "success": 1 - min(1.0, again.get(name, 0) / back[name]) if name in back else None,
        }
        for name in {*again, *back}
    }
