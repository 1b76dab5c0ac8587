"""Reconcile Queue resources with the store's queues: claims, conflicts, changes and deletion."""
