"""The API server as the operator sees it: its client, the resources that exist, and the queue of keys to look at.

It does not know what a Queue, Peer or Redrive means.
"""
