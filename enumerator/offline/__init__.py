"""What is done to a state while no query runs: compaction, and the first checkpoint of one."""
