"""Turns splits into Arrow record batches, inside a Spark task."""
