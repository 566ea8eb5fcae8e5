"""What a state directory says, as tables: read while a query runs, and nothing is written."""
