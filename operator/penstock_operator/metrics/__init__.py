"""The operator's metrics, and the queue statistics that it exports."""
