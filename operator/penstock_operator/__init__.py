"""Kubernetes: the resources Queue and Peer, written from the models that `penstock up` checks queues.yaml with.

Of the product it knows the store, no edge, and of the kit what every process has. The folder around it, `operator/`, is
no package: it would be taken for the standard library's `operator`.
"""
