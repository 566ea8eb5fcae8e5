"""What columns files have: inferred from a sample, grown when a file brings a new one."""
