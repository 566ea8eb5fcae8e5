"""One query as its host drives it: offsets, partitions, and what Spark keeps in a checkpoint."""
