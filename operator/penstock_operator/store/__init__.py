"""Watch the store: its availability, its data set, and messages stranded in queues of removed ring nodes."""
