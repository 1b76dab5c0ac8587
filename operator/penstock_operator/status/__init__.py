"""Write statuses and events of resources."""
