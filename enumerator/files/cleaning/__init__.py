"""Removes files that were read from the input: deletes them, or moves them."""
