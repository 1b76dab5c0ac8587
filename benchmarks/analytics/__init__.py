"""Compare the analytics job with pandas, DuckDB and a plain loop: speed, memory, and the effect on edges."""
