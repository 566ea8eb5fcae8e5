"""From what files hold to values of Spark's types: one rule for every format."""
