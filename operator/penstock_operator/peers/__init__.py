"""Reconcile Peer resources and EndpointSlices with the store's peers and `.rqprc`."""
