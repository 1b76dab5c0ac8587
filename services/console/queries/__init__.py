"""Models of queries: paging, selections of dead letters, and patterns on bodies."""
