"""Orders about files: read again, read from a place on, or dropped."""
