"""Arrow IPC and Feather."""
