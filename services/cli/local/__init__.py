"""What `penstock up` runs on this machine: its data folder, the embedded store, edges and console as child processes.

It knows no command and no option.
"""
