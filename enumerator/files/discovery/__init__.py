"""What is found: names, times and sizes choose; what is left out is counted."""
