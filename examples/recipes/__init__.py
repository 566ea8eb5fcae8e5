"""Writing to sinks: small programs to read and to copy. docs/recipes.md explains them."""
