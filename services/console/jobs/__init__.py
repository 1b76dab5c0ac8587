"""Jobs: redrives, purges and emptied queues that continue after their request, in any console of the store."""
