"""A year of flights: Spark is killed in mid-batch, `sluice run` reads the rest, all is counted."""
