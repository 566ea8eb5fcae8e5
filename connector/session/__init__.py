"""What concerns the process and its session: interpreter, errors shown, metrics."""
