"""ORC: stripes, and the tail that says where they are."""
