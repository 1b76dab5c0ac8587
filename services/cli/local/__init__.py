"""What `penstock up` runs here: its data folder, the embedded store, edges and console as child processes."""
