"""Peer resources and EndpointSlices become peers of the store and `.rqprc` files.

It knows neither queues nor redrives.
"""
