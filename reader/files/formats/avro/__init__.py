"""Avro: the container, its schemas, and the values."""
