"""What is written down: splits, checkpoint documents and their versions, stores, reader commits."""
