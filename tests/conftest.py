"""Randomised tests: no time limit for an example (machines are shared); a failure says how to repeat it."""

from hypothesis import settings

settings.register_profile("penstock", deadline=None, print_blob=True)
settings.load_profile("penstock")
