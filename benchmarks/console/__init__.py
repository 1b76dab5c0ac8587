"""Measure the console's response times, and the cost of its live view."""
