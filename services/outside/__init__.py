"""Readers of external input: URLs, and YAML or JSON documents.

Each reader raises one documented exception for every bad input, and no error repeats a possible secret. The package
imports nothing of the product, so every other package may use it.
"""
