"""Measure Penstock beside its peers: `python -m benchmarks` (or `make bench`).

One run starts every server on free ports of 127.0.0.1 in one temporary folder, drives all of them with the same
load generator (`load/`, C; `fallback/` where there is no compiler), and stops them again.
What is measured and what each peer promises when it acknowledges: docs/benchmarks.md.

Nothing here is imported by the product, and nothing here touches penstock-data.
"""
