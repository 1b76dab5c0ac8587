"""The Kubernetes operator: reconciles Queue, Peer and Redrive resources with the store.

It may import the store and the parts of the kit that every process uses, but no edge. Its folder `operator/` is not a
package, since that would shadow the standard library's `operator`.
"""
