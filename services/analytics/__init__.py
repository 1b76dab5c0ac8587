"""What happened and what died: a Spark job over samples and dead letters, and the data source that it reads them by."""
