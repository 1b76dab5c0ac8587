"""The analytics job beside pandas, DuckDB and a plain loop: how fast, how much memory, and what edges notice of it."""
