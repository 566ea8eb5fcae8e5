"""Local and mounted directory trees."""
