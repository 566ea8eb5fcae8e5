"""`sluice doctor`: whether a query can start here, and what stands in its way."""
