"""Plots: samples of the store are read as they come, and summed up by time.

It knows no request.
"""
