"""The parts of `penstock up`: its data folder, the embedded store, edges and console as child processes."""
