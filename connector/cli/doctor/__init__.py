"""`sluice doctor`: whether a query can start here, and what prevents it."""
