"""What all handlers work with: the console's parts, a request that was checked, and what a route is.

It knows no single route.
"""
