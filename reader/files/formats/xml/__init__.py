"""XML by the rules of Spark's reader: each element of a given name is a record."""
