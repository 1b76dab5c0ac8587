"""The PySpark data source `redis_stream`: dead letters, samples and any stream of a Penstock store."""
