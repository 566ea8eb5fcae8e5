"""How a schema goes on: how types grow, and what a reader says of a new column."""
