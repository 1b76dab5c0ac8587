"""Time series for plots: read the store's samples and aggregate them. Knows no requests."""
