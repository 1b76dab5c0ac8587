"""The analytics job on samples and dead letters, and the Spark data source that it reads with."""
