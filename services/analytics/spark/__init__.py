"""Everything about running Spark: its jars and session, access to buckets, signals, and containers."""
