"""Measures Sluice against Spark's own file source: same files, same run, ratios of medians.

`python -m benchmarks --help` lists the rows. Not here: correctness; the sinks are no-ops.
"""
