"""The embedded host: runs a direct write without Spark, on the same checkpoint."""
