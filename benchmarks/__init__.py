"""Measure Penstock and other brokers: `python -m benchmarks` (or `make bench`).

One run starts every server on free ports of 127.0.0.1 in one temporary folder, drives all of them with the same
load generator (`load/`, C; `fallback/` where there is no compiler), and stops them again.
docs/benchmarks.md describes the measures, and what an acknowledgement of each peer guarantees.

The product imports nothing from this package, and the benchmarks do not touch penstock-data.
"""
