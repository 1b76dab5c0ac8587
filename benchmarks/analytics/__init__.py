"""Measure the analytics job: speed, memory, and its tables beside DuckDB and Polars."""
