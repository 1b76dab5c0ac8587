"""The chart's dashboards, written from short descriptions.

python -m tools.dashboards charts/penstock/files/dashboards
"""
