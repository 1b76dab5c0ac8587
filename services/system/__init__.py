"""Facts of the operating system that the store and the kit both need.

It knows nothing of the product.
"""
