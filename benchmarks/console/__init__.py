"""What the console costs: its page in a browser, its process, and the edges beside it."""
