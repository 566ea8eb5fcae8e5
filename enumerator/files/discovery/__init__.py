"""What is found: names, times and sizes choose; nothing is left out in silence."""
