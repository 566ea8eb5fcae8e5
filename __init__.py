"""Spark Structured Streaming source with a split enumerator and a checkpoint protocol."""
