"""Watch the store: its availability, its dataset, and messages stranded in queues of removed ring nodes."""
