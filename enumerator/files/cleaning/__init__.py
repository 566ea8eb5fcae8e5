"""Takes files that were read for good out of the way: deletes them, or moves them."""
