"""Straight to the table: rows are written into data files in the task that reads them."""
