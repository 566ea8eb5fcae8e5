"""The options of a query: their model, their other names, and what must fit together."""
