"""Define the histogram bounds of samples, in seconds, for writers and readers."""

from __future__ import annotations

# Upper bounds; values above the last bound have a class of their own.
PUT_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
WAIT_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 21_600.0, 86_400.0)
CLASSES = len(PUT_S) + 1
