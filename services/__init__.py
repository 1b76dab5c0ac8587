"""The product: the queue store, the server shell all edges share, the edges themselves, the command line."""
