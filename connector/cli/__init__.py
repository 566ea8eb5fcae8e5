"""The command line `sluice`: looks at a state directory, and makes new ones of it."""
