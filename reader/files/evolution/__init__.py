"""How a schema goes on: its options, how types grow, and what a reader says of a new column."""
