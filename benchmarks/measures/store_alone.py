"""Measure the store without an edge, beside raw XADD on one connection with as many messages in flight.

`benchmarks/store.py` holds the store's side: `make_side(port) -> StoreSide`. Another file of the same form can be
measured in the same rounds (`--store-beside FILE`).
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

from benchmarks.generator import Bound, Load
from benchmarks.measures.bench import Bench
from benchmarks.measures.pipeline import CALLS_IN_FLIGHT, Mode, StoreSide, drive
from benchmarks.peers.peer import BODY, dial
from benchmarks.peers.redis import Store, encode_command
from benchmarks.results import Finding, Target

BATCHES = (100, 500)
OURS = Path(__file__).parents[1] / "store.py"
BASELINE = Path(__file__).parents[1] / "baseline" / "side.py"  # the prototype on which the design was based
BESIDE_WANTED = Target(">=", 0.8)  # the other side may check less than ours
RAW_LIMIT_S = 30.0
MakeSide = Callable[[int], StoreSide]


def measure(bench: Bench) -> list[Finding]:
    store = Store(bench.workshop, bench.store.program, "store-alone")
    try:
        sides = _sides(bench.store_beside)
        store.start()
        rounds = [_round(bench, store, sides) for _ in range(bench.plan.rounds)]
    except OSError as failure:
        return [Finding("store", "the store alone", unit="msg/s", note=str(failure))]
    return [finding for batch in BATCHES for finding in _findings(rounds, batch, sides)]


def _sides(beside: Path | None) -> dict[str, MakeSide]:
    paths = {"Penstock": OURS, "prototype": BASELINE} | ({beside.stem: beside} if beside else {})
    return {name: load_side(path) for name, path in paths.items()}


def load_side(path: Path) -> MakeSide:
    """Return `make_side` of a Python file."""
    spec = importlib.util.spec_from_file_location(f"store_side_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise OSError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # a missing file is an OSError
    make: MakeSide = module.make_side
    return make


Rates = dict[tuple[str, int], float]  # (what, batch) -> messages/s


def _round(bench: Bench, store: Store, sides: dict[str, MakeSide]) -> Rates:
    rates: Rates = {}
    for batch in BATCHES:
        bench.say(f"the store alone, {batch} messages a call")
        rates["raw XADD", batch] = _raw(bench, store, batch)
        for name, make in sides.items():
            for mode in Mode:
                with store.connect() as redis:
                    redis.flushall()
                seconds = drive(store.port, make(store.port), mode, batch, bench.plan.store_messages)
                rates[f"{name}: {mode.value}", batch] = bench.plan.store_messages / seconds
    return rates


def _raw(bench: Bench, store: Store, batch: int) -> float:
    request = encode_command("XADD", "raw", "*", "b", BODY) * batch
    load = Load("resp", [dial(store.port)], [request], window=batch * CALLS_IN_FLIGHT, per_request=batch)
    with contextlib.closing(load):
        rate = bench.generator.run(load, Bound(bench.plan.store_messages, RAW_LIMIT_S)).rate
    store.drop("raw")
    return rate


def _findings(rounds: list[Rates], batch: int, sides: dict[str, MakeSide]) -> list[Finding]:
    def rates(what: str) -> list[float]:
        return [each[what, batch] for each in rounds]

    whats = ["raw XADD", *(f"{name}: {mode.value}" for name in sides for mode in Mode)]
    found = [Finding("store", f"{what}, batch {batch}", rates(what), "msg/s") for what in whats]
    ours, *others = sides
    for other in others:
        for mode in Mode:
            pairs = zip(rates(f"{ours}: {mode.value}"), rates(f"{other}: {mode.value}"), strict=True)
            what = f"{mode.value}, batch {batch}: {ours} / {other}"
            found.append(
                Finding("store", what, [mine / theirs for mine, theirs in pairs], "x", BESIDE_WANTED)
            )
    return found
