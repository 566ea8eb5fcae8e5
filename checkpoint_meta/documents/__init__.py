"""What is written down: checkpoints, reader commits, and every smaller record of a state."""
