"""Access to the API server: its client, a mirror of the resources, and the work queue of keys to reconcile."""
