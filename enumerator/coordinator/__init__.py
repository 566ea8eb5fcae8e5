"""What lives on the driver: checkpoints in flight, the cut, acknowledgements, restore, upkeep."""
