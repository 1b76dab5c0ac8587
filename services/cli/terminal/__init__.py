"""Standard input and output: tables, JSON, progress, exit codes, and foreign bytes made safe for a terminal.

It knows neither the store nor settings.
"""
