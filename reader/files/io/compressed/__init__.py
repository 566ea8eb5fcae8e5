"""Enters compressed text in the middle, so that it is cut into batches and tasks as well."""
