"""Generate the chart's dashboards from short descriptions.

python -m tools.dashboards charts/penstock/files/dashboards
"""
